package deploy_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/tools"
)

var shellBlock = regexp.MustCompile("(?ms)^ *```sh\n(.*?)^ *```")

// runDocumented runs the commands of docs/install.md that hold this text, as an administrator at the top of the checkout.
func runDocumented(ctx context.Context, t *testing.T, stack *env.Env, part string) {
	t.Helper()
	var found []string
	for _, block := range shellBlock.FindAllStringSubmatch(readFile(t, "docs", "install.md"), -1) {
		if strings.Contains(block[1], part) {
			found = append(found, block[1])
		}
	}
	require.Len(t, found, 1, "want one block of commands with %s", part)
	commands := strings.NewReplacer("NAMESPACE", tenantNamespace, "OPERATORS", "default", "make build", "").Replace(found[0])

	programs := t.TempDir()
	require.NoError(t, os.Symlink(stack.Binary(tools.Kubectl), filepath.Join(programs, "kubectl")))
	command := exec.CommandContext(ctx, "sh", "-eu", "-c", commands)
	command.Dir = inCheckout(t)
	command.Env = []string{
		"PATH=" + programs + string(filepath.ListSeparator) + os.Getenv("PATH"), "KUBECONFIG=" + stack.Kubeconfig(env.Admin), "HOME=" + programs,
	}
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s\n%s", commands, output)
}

// uninstalls goes the way of docs/install.md, with the processes stopped.
func uninstalls(ctx context.Context, t *testing.T, stack *env.Env, base objects) {
	runDocumented(ctx, t, stack, "delete clusterrole,clusterrolebinding")
	for _, o := range base {
		current := &unstructured.Unstructured{}
		current.SetGroupVersionKind(o.GroupVersionKind())
		err := stack.Client().Get(ctx, client.ObjectKeyFromObject(o), current)
		if o.GetKind() == "CustomResourceDefinition" {
			require.NoError(t, err, "step 1 keeps the kinds")
		} else {
			assert.True(t, apierrors.IsNotFound(err), "%s: %v", id(o), err)
		}
	}
	mustKubectl(ctx, t, stack, env.Admin, "get", "namespace", env.OADPNamespace)
	mustKubectl(ctx, t, stack, env.Admin, "get", "configmap", "-n", env.OADPNamespace, "holdfast-policy")

	mustKubectl(ctx, t, stack, env.Admin, "delete", "nab", "-n", tenantNamespace, "everything", "--wait=false")
	finalizers := mustKubectl(ctx, t, stack, env.Admin, "get", "nab", "-n", tenantNamespace, "everything", "-o", "jsonpath={.metadata.finalizers}")
	require.Equal(t, `["`+oadpv1alpha1.NabFinalizer+`"]`, finalizers, "nobody takes it off")
	runDocumented(ctx, t, stack, `"finalizers":null`)
	runDocumented(ctx, t, stack, "kubectl delete -f deploy/crds/")
	for _, o := range base.ofKind("CustomResourceDefinition") {
		_, err := kubectl(ctx, t, stack, env.Admin, "get", "crd", o.GetName())
		require.ErrorContains(t, err, "NotFound")
	}

	left := &unstructured.UnstructuredList{}
	left.SetGroupVersionKind(velerov1.SchemeGroupVersion.WithKind("BackupList"))
	require.NoError(t, stack.Client().List(ctx, left, client.InNamespace(env.OADPNamespace),
		client.MatchingLabels{oadpv1alpha1.OadpLabel: oadpv1alpha1.OadpLabelValue}))
	assert.GreaterOrEqual(t, len(left.Items), 3, "the samples' and the quota's")
}

func uninstallsByHand(ctx context.Context, t *testing.T, stack *env.Env) {
	runDocumented(ctx, t, stack, "-f deploy/crds/ -f deploy/rbac/")
	rights := readObjects(t, "deploy/rbac")
	require.Len(t, live(ctx, t, stack, rights), len(rights))
	runDocumented(ctx, t, stack, "kubectl delete -f deploy/rbac/")
	for _, o := range rights {
		err := stack.Client().Get(ctx, client.ObjectKeyFromObject(o), o)
		assert.True(t, apierrors.IsNotFound(err), "%s: %v", id(o), err)
	}
	awaitServed(ctx, t, stack, readObjects(t, "deploy/crds"))
	runDocumented(ctx, t, stack, "kubectl delete -f deploy/crds/")
}

// awaitServed reads kinds before they are deleted. The API server has no storage yet for a kind that nobody has read. If it deletes the
// definition then, it may try again only after five minutes.
func awaitServed(ctx context.Context, t *testing.T, stack *env.Env, kinds objects) {
	t.Helper()
	for _, o := range kinds {
		eventually.Succeeds(t, time.Minute, func() error {
			_, err := kubectl(ctx, t, stack, env.Admin, "get", "-A", o.GetName())
			return err
		})
	}
}
