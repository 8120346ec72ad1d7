package production_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
)

// The main path: a backup, the loss of what it holds, a restore, and the backup's end.
func TestABackupIsRestoredAndDeleted(t *testing.T) {
	r := onSharedStack(t, "main")
	r.BackUp("nightly", "")
	r.AwaitEnd("nightly")
	lost := &corev1.ConfigMap{}
	require.NoError(t, r.Tenant.Get(t.Context(), client.ObjectKey{Namespace: r.Name, Name: "object-000"}, lost))
	require.NoError(t, r.Tenant.Delete(t.Context(), lost))

	restore := &oadpv1alpha1.NonAdminRestore{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.Name, Name: "back"},
		Spec:       oadpv1alpha1.NonAdminRestoreSpec{RestoreSpec: &velerov1.RestoreSpec{BackupName: "nightly"}},
	}
	require.NoError(t, r.Tenant.Create(t.Context(), restore))
	r.Await(func(ctx context.Context) error {
		err := r.Admin.Get(ctx, client.ObjectKeyFromObject(restore), restore)
		made := restore.Status.VeleroRestore
		if err == nil && (made == nil || made.Status == nil || made.Status.Phase != velerov1.RestorePhaseCompleted) {
			err = fmt.Errorf("the restore is not Completed: %+v", restore.Status)
		}
		return err
	})
	back := &corev1.ConfigMap{}
	require.NoError(t, r.Tenant.Get(t.Context(), client.ObjectKeyFromObject(lost), back))
	assert.Equal(t, lost.Data, back.Data)
	r.remove("nightly")
	assert.Empty(t, r.Made())
	r.AwaitNoOpenWorkflow()
}

// Each part of Temporal is killed while backups are created and deleted: each has one Velero Backup, and what is deleted goes.
func TestEveryPartOfTemporalIsKilled(t *testing.T) {
	r := onSharedStack(t, "killed")
	for _, part := range append(slices.Clone(env.TemporalServices), env.Postgres) {
		t.Run(part, func(t *testing.T) {
			r := *r
			r.T = t
			deleted, underWay, late := part+"-deleted", part+"-under-way", part+"-late"
			r.BackUp(deleted, "")
			r.AwaitEnd(deleted)
			r.RequestDeletion(deleted)
			r.BackUp(underWay, "")
			process := r.Component(part)
			require.NoError(t, process.Kill())
			r.BackUp(late, "")
			require.NoError(t, process.Restart(t.Context()))
			r.AwaitEnd(underWay)
			r.AwaitEnd(late)
			r.AwaitGone(deleted)
			made := r.Made()
			assert.Empty(t, made[deleted])
			assert.Len(t, made[underWay], 1)
			assert.Len(t, made[late], 1)
			r.AwaitNoOpenWorkflow()
		})
	}
}
