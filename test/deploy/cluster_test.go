package deploy_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/tools"
)

const (
	tenantUser      = "alice"
	tenantNamespace = "team-a"
)

// On a real API server, with real kubectl, as docs/install.md says it.
func TestInstallation(t *testing.T) {
	if testing.Short() {
		t.Skip("starts real components")
	}
	t.Parallel()                                                    // with TestImageBuilds: the one waits, the other compiles
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute) // the first build is in it
	defer cancel()
	stack, err := env.Start(ctx, env.Options{Without: []string{env.Velero, env.S3}})
	require.NoError(t, err)
	t.Cleanup(stack.Stop)
	stack.ReportFailure(t)
	base := render(t, inCheckout(t, "deploy", "base"))

	// In this order: each goes on from what the ones before have laid in the cluster.
	t.Run("by hand is what test/env has done", func(t *testing.T) { runDocumented(ctx, t, stack, "-f deploy/crds/ -f deploy/rbac/") })
	t.Run("a second apply changes nothing", func(t *testing.T) { appliesTwice(ctx, t, stack, base) })
	t.Run("the Pods pass Pod Security's restricted level", func(t *testing.T) { passesRestricted(ctx, t, stack, base) })
	t.Run("an upgrade can leave the watcher for the end", func(t *testing.T) { leavesOutWatcher(ctx, t, stack, base) })
	running := runDeployments(ctx, t, stack, base)
	t.Run("both processes become ready as their Deployments say", func(t *testing.T) { becomeReady(ctx, t, running) })
	t.Run("a tenant's samples are taken", func(t *testing.T) { takesSamples(ctx, t, stack) })
	t.Run("a quota bounds a tenant", func(t *testing.T) { boundsTenant(ctx, t, stack) })
	t.Run("both processes end within their grace period", func(t *testing.T) { stopInTime(t, running) })
	t.Run("an uninstallation leaves the backups", func(t *testing.T) { uninstalls(ctx, t, stack, base) })
	t.Run("what was installed by hand is removed by hand", func(t *testing.T) { uninstallsByHand(ctx, t, stack) })
	t.Run("the chart", func(t *testing.T) { isAChart(ctx, t, stack) })
}

// kubectl runs the real kubectl as one of the stack's users.
func kubectl(ctx context.Context, t *testing.T, stack *env.Env, user string, args ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(ctx, stack.Binary(tools.Kubectl), append([]string{"--kubeconfig", stack.Kubeconfig(user)}, args...)...)
	command.Env = []string{"HOME=" + t.TempDir()}
	output, err := command.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, output)
	}
	return string(output), err
}

func mustKubectl(ctx context.Context, t *testing.T, stack *env.Env, user string, args ...string) string {
	t.Helper()
	output, err := kubectl(ctx, t, stack, user, args...)
	require.NoError(t, err)
	return output
}

// manifest writes a NonAdminBackup of everything under this name.
func manifest(t *testing.T, name string) (path string) {
	t.Helper()
	sample := readObjects(t, "deploy/samples").find(t, "NonAdminBackup/everything").DeepCopy()
	sample.SetName(name)
	content, err := sample.MarshalJSON()
	require.NoError(t, err)
	path = filepath.Join(t.TempDir(), name+".json")
	require.NoError(t, os.WriteFile(path, content, 0o600))
	return path
}

// live reads the objects as the cluster has them.
func live(ctx context.Context, t *testing.T, stack *env.Env, wanted objects) objects {
	t.Helper()
	var found objects
	for _, o := range wanted {
		current := &unstructured.Unstructured{}
		current.SetGroupVersionKind(o.GroupVersionKind())
		require.NoError(t, stack.Client().Get(ctx, client.ObjectKeyFromObject(o), current), id(o))
		found = append(found, current)
	}
	return found
}

func appliesTwice(ctx context.Context, t *testing.T, stack *env.Env, base objects) {
	dir := inCheckout(t, "deploy", "base")
	apply := []string{"apply", "--server-side", "-k", dir}
	output := mustKubectl(ctx, t, stack, env.Admin, apply...)
	assert.Len(t, strings.Split(strings.TrimSpace(output), "\n"), len(base), "a line for each object, and no warning:\n%s", output)
	first := live(ctx, t, stack, base)
	mustKubectl(ctx, t, stack, env.Admin, apply...)
	for i, after := range live(ctx, t, stack, base) {
		assert.Equal(t, first[i].GetGeneration(), after.GetGeneration(), id(after))
		if kind := after.GetKind(); kind != "Deployment" { // whose controller may be writing the status
			assert.Equal(t, first[i].GetResourceVersion(), after.GetResourceVersion(), id(after))
		}
	}
}

func passesRestricted(ctx context.Context, t *testing.T, stack *env.Env, base objects) {
	const namespace = "restricted"
	require.NoError(t, stack.Client().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: namespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}))
	for _, name := range []string{workerName, watcherName} {
		template := base.deployment(t, name).Spec.Template
		pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
		pod.Name, pod.Namespace = name, namespace
		require.NoError(t, stack.Client().Create(ctx, pod.DeepCopy(), client.DryRunAll), name)

		pod.Spec.SecurityContext.RunAsNonRoot = nil
		err := stack.Client().Create(ctx, pod, client.DryRunAll)
		require.ErrorContains(t, err, `violates PodSecurity "restricted:latest"`, "the level is in force here")
	}
}

func takesSamples(ctx context.Context, t *testing.T, stack *env.Env) {
	require.NoError(t, stack.CreateTenant(ctx, tenantNamespace, tenantUser))
	mustKubectl(ctx, t, stack, env.Admin, "apply", "-f", inCheckout(t, "deploy", "samples", "policy.yaml"))
	samples := readObjects(t, "deploy/samples").ofKind("NonAdminBackup")
	for _, file := range []string{"nonadminbackup.yaml", "nonadminbackup_label_selector.yaml", "nonadminrestore.yaml", "backupplan.yaml"} {
		path := inCheckout(t, "deploy", "samples", file)
		mustKubectl(ctx, t, stack, tenantUser, "apply", "-n", tenantNamespace, "--validate=strict", "-f", path)
	}
	for _, o := range samples { // Velero itself is not here
		eventually.Succeeds(t, 3*time.Minute, func() error {
			phase, err := kubectl(ctx, t, stack, tenantUser, "get", "nab", "-n", tenantNamespace, o.GetName(),
				"-o", "jsonpath={.status.phase} {.status.veleroBackup.spec.ttl}")
			if want := "Created 168h0m0s"; err == nil && phase != want { // with what the sample policy enforces
				err = fmt.Errorf("%s is %q, not %q", o.GetName(), phase, want)
			}
			return err
		})
	}
	_, err := kubectl(ctx, t, stack, tenantUser, "apply", "-f", inCheckout(t, "deploy", "samples", "policy.yaml"))
	require.ErrorContains(t, err, "forbidden", "the policy is the administrator's")
}

// boundsTenant stands in for the controller that counts, which does not run here: it writes what that one would.
func leavesOutWatcher(ctx context.Context, t *testing.T, stack *env.Env, base objects) {
	output := mustKubectl(ctx, t, stack, env.Admin, "apply", "--server-side", "--dry-run=server", "-k", inCheckout(t, "deploy", "base"),
		"-l", selectorOf(t, "name!=holdfast-watcher"))
	assert.NotContains(t, output, "deployment.apps/holdfast-watcher")
	assert.Contains(t, output, "deployment.apps/holdfast-worker")
	assert.Contains(t, output, "clusterrole.rbac.authorization.k8s.io/holdfast-watcher")
	assert.Len(t, strings.Split(strings.TrimSpace(output), "\n"), len(base)-2, "all but its Deployment and budget:\n%s", output)
}

// selectorOf returns the label selector of docs/install.md that holds this.
func selectorOf(t *testing.T, part string) string {
	t.Helper()
	match := regexp.MustCompile(`-l '([^']*` + regexp.QuoteMeta(part) + `)'`).FindStringSubmatch(readFile(t, "docs", "install.md"))
	require.NotNil(t, match, part)
	return match[1]
}

func boundsTenant(ctx context.Context, t *testing.T, stack *env.Env) {
	const counted = corev1.ResourceName("count/nonadminbackups.oadp.openshift.io")
	runDocumented(ctx, t, stack, "resource_quota.yaml")
	quota := &corev1.ResourceQuota{}
	require.NoError(t, stack.Client().Get(ctx, client.ObjectKey{Namespace: tenantNamespace, Name: "backups"}, quota))
	allowed := quota.Spec.Hard[counted]
	require.EqualValues(t, 10, allowed.Value())
	quota.Status.Hard = quota.Spec.Hard
	quota.Status.Used = corev1.ResourceList{counted: resource.MustParse("9")}
	require.NoError(t, stack.Client().Status().Update(ctx, quota))

	mustKubectl(ctx, t, stack, tenantUser, "create", "-n", tenantNamespace, "-f", manifest(t, "tenth"))
	eventually.Succeeds(t, 2*time.Minute, func() error { // the admission plugin may not have seen the quota at once
		err := stack.Client().Get(ctx, client.ObjectKeyFromObject(quota), quota)
		if used := quota.Status.Used[counted]; err == nil && used.Value() != 10 {
			err = fmt.Errorf("%s are used", used.String())
		}
		return err
	})
	_, err := kubectl(ctx, t, stack, tenantUser, "create", "-n", tenantNamespace, "-f", manifest(t, "eleventh"))
	require.ErrorContains(t, err, "exceeded quota: backups, requested: "+string(counted)+"=1, used: "+string(counted)+"=10")
}
