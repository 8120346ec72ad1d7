package e2e_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"holdfast.dev/holdfast/k8s"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/tools"
)

// docs/gitops.md: what kubectl waits for, and what kstatus makes of the same objects.
func TestScriptsAndToolsWaitForWhatTenantsMake(t *testing.T) {
	t.Parallel()
	x := newTenant(t, "grace")
	good := x.backUp("good")
	refused := x.backUp("refused", withSpec(func(spec *velerov1.BackupSpec) { spec.ExcludedNamespaces = []string{"other"} }))
	plan := x.plan("nightly", "0 3 1 1 *", nil)

	x.waits("Complete", good, status.CurrentStatus)
	x.waits("Stalled", refused, status.FailedStatus)
	x.waits("Ready", plan, status.CurrentStatus)
	x.waits("Complete", x.restore("again", good.Name), status.CurrentStatus)
	// Its backup is in an administrator's location, whose files a tenant does not get.
	x.waits("Stalled", x.request(velerov1.DownloadTargetKindBackupLog, good.Name), status.FailedStatus)

	require.NoError(t, x.run("wait -n", good.Name), "the script of the page waits for a good end")
	require.Error(t, x.run("wait -n", refused.Name), "and for a bad one")
	require.NoError(t, kubectl(t.Context(), "create", "configmap", "argocd-cm", "-n", x.namespace))
	require.NoError(t, x.run("--patch-file", ""))

	for _, shown := range []struct {
		arguments []string
		holds     []string
	}{
		{[]string{"get", "holdfast", "--no-headers", "-o", "name"}, []string{"nonadminbackup.oadp.openshift.io/good"}},
		{[]string{"get", "nab", "-o", "wide"}, []string{"COMPLETE", "REASON", "Completed", "InvalidBackupSpec"}},
		{[]string{"get", "nab", "--field-selector", "status.phase=BackingOff", "-o", "name"}, []string{"nonadminbackup.oadp.openshift.io/refused"}},
	} {
		printed := kubectlPrints(t.Context(), t, append([]string{"-n", x.namespace}, shown.arguments...)...)
		for _, text := range shown.holds {
			assert.Contains(t, printed, text, "kubectl %s", strings.Join(shown.arguments, " "))
		}
	}
}

// waits lets kubectl wait for a condition of the object, and kstatus judge it.
func (x *tenant) waits(condition string, object client.Object, is status.Status) {
	x.t.Helper()
	gvk, err := apiutil.GVKForObject(object, k8s.Scheme())
	require.NoError(x.t, err)
	require.NoError(x.t, kubectl(x.t.Context(), "wait", "-n", x.namespace, "--for=condition="+condition, "--timeout="+patience.String(),
		strings.ToLower(gvk.Kind)+"/"+object.GetName()))
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	require.NoError(x.t, admin.Get(x.t.Context(), client.ObjectKeyFromObject(object), u))
	found, err := status.Compute(u)
	require.NoError(x.t, err)
	assert.Equal(x.t, is, found.Status, "%s: %s", object.GetName(), found.Message)
}

// run runs the code blocks of docs/gitops.md that hold a text as its reader would, in the tenant's namespace and for the backup.
func (x *tenant) run(holds, backup string) error {
	x.t.Helper()
	page, err := os.ReadFile("../../docs/gitops.md")
	require.NoError(x.t, err)
	var script strings.Builder
	for _, block := range codeBlocks.FindAllStringSubmatch(string(page), -1) {
		if strings.Contains(block[1], holds) {
			script.WriteString(block[1])
		}
	}
	require.NotEmpty(x.t, script.String(), holds)
	command := exec.CommandContext(x.t.Context(), "bash", "-euc", strings.NewReplacer(
		"-n shop", "-n "+x.namespace, "-n argocd", "-n "+x.namespace, "nab/nightly", "nab/"+backup,
	).Replace(script.String()))
	command.Dir = "../.."
	command.Env = append(os.Environ(), "KUBECONFIG="+stack.Kubeconfig(env.Admin),
		"PATH="+filepath.Dir(stack.Binary(tools.Kubectl))+string(os.PathListSeparator)+os.Getenv("PATH"))
	printed, err := command.CombinedOutput()
	x.t.Logf("%s", printed)
	return err
}

var codeBlocks = regexp.MustCompile("(?s)```(?:sh|bash)\n(.*?)```")

// kubectlPrints is what kubectl prints for the administrator.
func kubectlPrints(ctx context.Context, t *testing.T, args ...string) string {
	t.Helper()
	command := exec.CommandContext(ctx, stack.Binary(tools.Kubectl), append([]string{"--kubeconfig", stack.Kubeconfig(env.Admin)}, args...)...)
	printed, err := command.CombinedOutput()
	require.NoError(t, err, "kubectl %v: %s", args, printed)
	return string(printed)
}
