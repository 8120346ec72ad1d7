package monitoring_test

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/tools"
)

// seeFinalization has the backup restored with a workload that never gets ready, and looks with the operator's command at what
// the restore waits for after Velero.
func seeFinalization(t *testing.T, stack *env.Env, admin client.Client, backup client.ObjectKey) {
	t.Helper()
	nar := &oadpv1alpha1.NonAdminRestore{
		ObjectMeta: metav1.ObjectMeta{Namespace: backup.Namespace, Name: "slow"},
		Spec:       oadpv1alpha1.NonAdminRestoreSpec{RestoreSpec: &velerov1.RestoreSpec{BackupName: backup.Name}},
	}
	require.NoError(t, admin.Create(t.Context(), nar))
	velero := &velerov1.Restore{}
	await(t, func(c *assert.CollectT) {
		require.NoError(c, admin.Get(t.Context(), client.ObjectKeyFromObject(nar), nar))
		require.NotNil(c, nar.Status.VeleroRestore)
		key := client.ObjectKey{Namespace: env.OADPNamespace, Name: nar.Status.VeleroRestore.Name}
		require.NoError(c, admin.Get(t.Context(), key, velero))
	})
	labels := map[string]string{velerov1.RestoreNameLabel: velero.Name}
	require.NoError(t, admin.Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: backup.Namespace, Name: "web", Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "none"}}},
			},
		},
	}))
	before := velero.DeepCopy()
	now := metav1.Now()
	velero.Status = velerov1.RestoreStatus{Phase: velerov1.RestorePhaseCompleted, CompletionTimestamp: &now}
	require.NoError(t, admin.Patch(t.Context(), velero, client.MergeFrom(before)))

	binaries, err := tools.BuildHoldfast(t.Context(), nil)
	require.NoError(t, err)
	run := func(c *assert.CollectT, args ...string) string {
		command := exec.CommandContext(t.Context(), binaries[tools.Holdfast], append(args,
			"--kubeconfig", stack.Kubeconfig(env.Admin), "--cluster-id", stack.ClusterID())...)
		command.Env = []string{"HOME=" + t.TempDir(), "TEMPORAL_ADDRESS=" + stack.TemporalAddress()}
		output, err := command.CombinedOutput()
		require.NoError(c, err, string(output))
		return string(output)
	}
	await(t, func(c *assert.CollectT) {
		described := run(c, "describe", "restore", "shop/slow")
		assert.Regexp(c, `\nVelero phase: +Completed\n`, described)
		assert.Regexp(c, `\nFinalization: +Finalizing\n`, described)
		assert.Regexp(c, `\nTask cleanup: +Completed after \d+s\n`, described)
		assert.Regexp(c, `\nTask validation: +InProgress\n`, described)
		assert.Regexp(c, `\nFinalization workflow status: +Running\n`, described)
		assert.Regexp(c, `\nRetried: +\S+, attempt \d+: waits for Deployment web\n`, described)
	})
	await(t, func(c *assert.CollectT) {
		listed := run(c, "list", "restores", "--namespace", "shop")
		assert.Regexp(c, `shop +slow +Created +Completed +Finalizing +0 +\d+s +running\n`, listed)
		assert.Regexp(c, `shop +undo +Created +Failed +0 +\d+s +none\n`, listed)
	})
}
