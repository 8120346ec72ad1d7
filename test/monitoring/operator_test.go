package monitoring_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/eventually"
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
	eventually.Succeeds(t, patience, func() error {
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(nar), nar); err != nil {
			return err
		}
		if nar.Status.VeleroRestore == nil {
			return fmt.Errorf("no Velero Restore: %+v", nar.Status)
		}
		return admin.Get(t.Context(), client.ObjectKey{Namespace: env.OADPNamespace, Name: nar.Status.VeleroRestore.Name}, velero)
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
	home := t.TempDir()
	says := func(args []string, expressions ...string) {
		t.Helper()
		eventually.Succeeds(t, patience, func() error {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			command := exec.CommandContext(ctx, binaries[tools.Holdfast], append(args,
				"--kubeconfig", stack.Kubeconfig(env.Admin), "--cluster-id", stack.ClusterID())...)
			command.Env = []string{"HOME=" + home, "TEMPORAL_ADDRESS=" + stack.TemporalAddress()}
			output, err := command.CombinedOutput()
			if err = errors.Join(err, matches(string(output), expressions...)); err != nil {
				return fmt.Errorf("%w, it says:\n%s", err, output)
			}
			return nil
		})
	}
	says([]string{"describe", "restore", "shop/slow"},
		`\nVelero phase: +Completed\n`, `\nFinalization: +Finalizing\n`, `\nTask cleanup: +Completed after \d+s\n`,
		`\nTask validation: +InProgress\n`, `\nFinalization workflow status: +Running\n`,
		`\nRetried: +\S+, attempt \d+: waits for Deployment web\n`)
	const age = `(\d+m)?\d*s?` // a busy machine may take minutes
	says([]string{"list", "restores", "--namespace", "shop"},
		`shop +slow +Created +Completed +Finalizing +0 +`+age+` +running\n`, `shop +undo +Created +Failed +0 +`+age+` +none\n`)
}
