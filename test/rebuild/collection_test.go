package rebuild_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/workflows/contract"
)

// orphaned is the metadata of something made for an object "lost" of namespace shop that never was.
func orphaned(origin owner.Origin) metav1.ObjectMeta {
	lost := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "lost"}}
	name := "shop-lost-" + uuid.NewString()
	return origin.Meta(lost, name, env.OADPNamespace, name)
}

func unavailable() velerov1.BackupStorageLocationSpec {
	return velerov1.BackupStorageLocationSpec{
		Provider: "aws", StorageType: velerov1.StorageType{ObjectStorage: &velerov1.ObjectStorageLocation{Bucket: "nowhere"}},
	}
}

// collected: what was made for objects that are gone goes, and nothing else.
func collected(t *testing.T, r *rig) {
	t.Helper()
	now := metav1.Now()
	ended := velerov1.BackupStatus{Phase: velerov1.BackupPhaseCompleted, StartTimestamp: &now, CompletionTimestamp: &now}
	gone := map[string]client.Object{
		"a copy of a Secret": &corev1.Secret{ObjectMeta: orphaned(owner.Location)},
		"a location":         &velerov1.BackupStorageLocation{ObjectMeta: orphaned(owner.Location), Spec: unavailable()},
		"an approval request": &oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequest{
			ObjectMeta: orphaned(owner.Location),
		},
		"a restore that has ended": &velerov1.Restore{
			ObjectMeta: orphaned(owner.Restore), Spec: velerov1.RestoreSpec{BackupName: "none"},
			Status: velerov1.RestoreStatus{Phase: velerov1.RestorePhaseCompleted},
		},
		"a backup that was refused": &velerov1.Backup{
			ObjectMeta: orphaned(owner.Backup), Status: velerov1.BackupStatus{Phase: velerov1.BackupPhaseFailedValidation},
		},
	}
	unmanaged := orphaned(owner.Location)
	delete(unmanaged.Labels, oadpv1alpha1.ManagedByLabel)
	stays := map[string]client.Object{
		"a backup with data": &velerov1.Backup{
			ObjectMeta: orphaned(owner.Backup), Status: ended, Spec: velerov1.BackupSpec{StorageLocation: "elsewhere"},
		},
		"a Secret that nobody says is ours": &corev1.Secret{ObjectMeta: unmanaged},
		"a Secret of an administrator's": &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: env.OADPNamespace, Name: "shop-lost",
		}},
	}
	for _, objects := range []map[string]client.Object{gone, stays} {
		for what, object := range objects {
			require.NoError(t, r.admin.Create(t.Context(), object), what)
		}
	}
	var velero velerov1.BackupStorageLocationList
	require.NoError(t, r.admin.List(t.Context(), &velero, client.InNamespace(env.OADPNamespace)))

	result := run[contract.CollectionResult](r, contract.KindCollection.Workflow, contract.CollectionInput{Cluster: r.ClusterID()})
	require.Empty(t, result.Waiting)
	for what, object := range gone {
		err := r.admin.Get(t.Context(), client.ObjectKeyFromObject(object), object)
		deleted := apierrors.IsNotFound(err) || !object.GetDeletionTimestamp().IsZero() // Velero removes a restore's files first
		assert.True(t, deleted, "%s: %v", what, err)
	}
	for what, object := range stays {
		require.NoError(t, r.admin.Get(t.Context(), client.ObjectKeyFromObject(object), object), what)
		assert.Zero(t, object.GetDeletionTimestamp(), what)
	}
	for _, each := range []string{"nightly", "offsite"} {
		r.awaitCompleted("shop", each)
	}
	var after velerov1.BackupStorageLocationList
	require.NoError(t, r.admin.List(t.Context(), &after, client.InNamespace(env.OADPNamespace)))
	assert.Len(t, after.Items, len(velero.Items)-1, "all but the orphan")
}
