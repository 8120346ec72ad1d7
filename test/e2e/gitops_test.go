package e2e_test

import (
	"context"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/tools"
)

// docs/gitops.md: what kubectl waits for, and what kstatus makes of the same objects.
func TestScriptsAndToolsWaitForABackup(t *testing.T) {
	t.Parallel()
	x := newTenant(t, "grace")
	good := x.backUp("good")
	refused := x.backUp("refused", withSpec(func(spec *velerov1.BackupSpec) { spec.ExcludedNamespaces = []string{"other"} }))

	require.NoError(t, kubectl(t.Context(), "wait", "-n", x.namespace, "--for=condition=Complete", "--timeout="+patience.String(), "nab/good"))
	require.NoError(t, kubectl(t.Context(), "wait", "-n", x.namespace, "--for=condition=Stalled", "--timeout="+patience.String(), "nab/refused"))
	for object, is := range map[client.Object]status.Status{good: status.CurrentStatus, refused: status.FailedStatus} {
		require.NoError(t, x.client.Get(t.Context(), client.ObjectKeyFromObject(object), object))
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		require.NoError(t, err)
		u := &unstructured.Unstructured{Object: fields}
		u.SetGroupVersionKind(oadpv1alpha1.GroupVersion.WithKind(oadpv1alpha1.KindNonAdminBackup))
		found, err := status.Compute(u)
		require.NoError(t, err)
		assert.Equal(t, is, found.Status, found.Message)
	}

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

// kubectlPrints is what kubectl prints for the administrator.
func kubectlPrints(ctx context.Context, t *testing.T, args ...string) string {
	t.Helper()
	command := exec.CommandContext(ctx, stack.Binary(tools.Kubectl), append([]string{"--kubeconfig", stack.Kubeconfig(env.Admin)}, args...)...)
	printed, err := command.CombinedOutput()
	require.NoError(t, err, "kubectl %v: %s", args, printed)
	return string(printed)
}
