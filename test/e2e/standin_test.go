package e2e_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
)

// actForVelero stops Velero for the rest of the test, which then says what Velero would, in its own time: see veleroSays.
func actForVelero(t *testing.T) {
	t.Helper()
	velero := stack.Component(env.Velero)
	require.NoError(t, velero.Stop())
	t.Cleanup(func() { require.NoError(t, velero.Restart(context.Background())) })
}

// veleroSays writes a phase into the Velero Backup of an object, as Velero does.
func veleroSays(t *testing.T, nab *oadpv1alpha1.NonAdminBackup, phase velerov1.BackupPhase) {
	t.Helper()
	made := veleroBackup(t, nab.Status.VeleroBackup.Name)
	require.NotNil(t, made)
	before := made.DeepCopy()
	now := metav1.Now()
	made.Status.Phase = phase
	if made.Status.StartTimestamp == nil {
		made.Status.StartTimestamp = &now
	}
	if phase == velerov1.BackupPhaseCompleted {
		made.Status.CompletionTimestamp = &now
	}
	require.NoError(t, admin.Patch(t.Context(), made, client.MergeFrom(before)))
}

// created creates a backup and waits until its Velero Backup exists.
func (x *tenant) created(name string) *oadpv1alpha1.NonAdminBackup {
	x.t.Helper()
	return x.await(x.backUp(name), "Created", func(now *oadpv1alpha1.NonAdminBackup) bool {
		return now.Status.Phase == oadpv1alpha1.NonAdminPhaseCreated
	})
}

// started runs a further worker or watcher until the test ends, unless the test stops it before.
func started(t *testing.T, start func(context.Context, string, ...string) (*env.Process, error), name string, flags ...string) *env.Process {
	t.Helper()
	process, err := start(t.Context(), name, flags...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, process.Stop()) })
	return process
}
