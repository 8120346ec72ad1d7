package k8s_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

// tenantBackup is an object as it was read. Go would write its spec with zero values that the tenant never wrote.
func tenantBackup() *oadpv1alpha1.NonAdminBackup {
	return &oadpv1alpha1.NonAdminBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "nightly", UID: "u-1", ResourceVersion: "7", Generation: 3},
		Spec:       oadpv1alpha1.NonAdminBackupSpec{BackupSpec: &velerov1.BackupSpec{StorageLocation: "store"}},
	}
}

func TestAPatchIsBoundToTheObjectReadAndHoldsOnlyWhatChanged(t *testing.T) {
	tests := map[string]struct {
		before func(*oadpv1alpha1.NonAdminBackup)
		change func(*oadpv1alpha1.NonAdminBackup)
		want   string
	}{
		"a status": {
			change: func(nab *oadpv1alpha1.NonAdminBackup) { nab.Status.Phase = oadpv1alpha1.NonAdminPhaseCreated },
			want:   `{"metadata":{"uid":"u-1","resourceVersion":"7"},"status":{"phase":"Created"}}`,
		},
		"a status that loses a field": {
			before: func(nab *oadpv1alpha1.NonAdminBackup) { nab.Status.QueueInfo = &oadpv1alpha1.QueueInfo{} },
			change: func(nab *oadpv1alpha1.NonAdminBackup) { nab.Status.QueueInfo = nil },
			want:   `{"metadata":{"uid":"u-1","resourceVersion":"7"},"status":{"queueInfo":null}}`,
		},
		"a finalizer": {
			change: func(nab *oadpv1alpha1.NonAdminBackup) { nab.Finalizers = []string{"f"} },
			want:   `{"metadata":{"uid":"u-1","resourceVersion":"7","finalizers":["f"]}}`,
		},
		"the last finalizer's removal": {
			before: func(nab *oadpv1alpha1.NonAdminBackup) { nab.Finalizers = []string{"f"} },
			change: func(nab *oadpv1alpha1.NonAdminBackup) { nab.Finalizers = nil },
			want:   `{"metadata":{"uid":"u-1","resourceVersion":"7","finalizers":null}}`,
		},
		"the status of an object whose spec could not be read": {
			before: func(nab *oadpv1alpha1.NonAdminBackup) {
				nab.Spec = oadpv1alpha1.NonAdminBackupSpec{Unreadable: "ttl: no duration"}
			},
			change: func(nab *oadpv1alpha1.NonAdminBackup) { nab.Status.Phase = oadpv1alpha1.NonAdminPhaseBackingOff },
			want:   `{"metadata":{"uid":"u-1","resourceVersion":"7"},"status":{"phase":"BackingOff"}}`,
		},
		"nothing": {
			change: func(*oadpv1alpha1.NonAdminBackup) {},
			want:   `{"metadata":{"uid":"u-1","resourceVersion":"7"}}`,
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			nab := tenantBackup()
			if test.before != nil {
				test.before(nab)
			}
			before := nab.DeepCopy()
			patch := k8s.BoundPatch(before)
			test.change(nab)
			data, err := patch.Data(nab)
			require.NoError(t, err)
			assert.JSONEq(t, test.want, string(data))
			assert.Equal(t, types.MergePatchType, patch.Type())
			assert.Equal(t, "7", before.ResourceVersion, "the object read was changed")
		})
	}
}

// Somebody may change the very object that the patch was made from: what counts is how it was then.
func TestAPatchRemembersTheObjectAsItWasRead(t *testing.T) {
	nab := tenantBackup()
	patch := k8s.BoundPatch(nab)
	nab.Status.Phase = oadpv1alpha1.NonAdminPhaseNew
	data, err := patch.Data(nab)
	require.NoError(t, err)
	assert.JSONEq(t, `{"metadata":{"uid":"u-1","resourceVersion":"7"},"status":{"phase":"New"}}`, string(data))
}

func TestAnObjectThatWasNeverReadCannotBePatched(t *testing.T) {
	nab := tenantBackup()
	nab.ResourceVersion = ""
	_, err := k8s.BoundPatch(nab).Data(nab)
	require.ErrorContains(t, err, "compute patch")
}

// A timed-out attempt may arrive late: after another writer, or when another object has taken the name.
func TestALatePatchIsRefused(t *testing.T) {
	statusOf := func(nab *oadpv1alpha1.NonAdminBackup) *oadpv1alpha1.NonAdminBackup {
		nab = nab.DeepCopy()
		nab.Status.Phase = oadpv1alpha1.NonAdminPhaseCreated
		return nab
	}
	tests := map[string]func(t *testing.T, c client.Client, read *oadpv1alpha1.NonAdminBackup){
		"after another writer": func(t *testing.T, c client.Client, read *oadpv1alpha1.NonAdminBackup) {
			other := read.DeepCopy()
			other.Labels = map[string]string{"a": "b"}
			require.NoError(t, c.Update(t.Context(), other))
		},
		"after the object was recreated": func(t *testing.T, c client.Client, read *oadpv1alpha1.NonAdminBackup) {
			require.NoError(t, c.Delete(t.Context(), read.DeepCopy()))
			again := tenantBackup()
			again.UID, again.ResourceVersion = "u-2", ""
			require.NoError(t, c.Create(t.Context(), again))
			again.Labels = map[string]string{"a": "b"} // no version of the new one may happen to be the old one's
			require.NoError(t, c.Update(t.Context(), again))
		},
	}
	for title, meanwhile := range tests {
		t.Run(title, func(t *testing.T) {
			c := fake.NewClientBuilder().WithScheme(k8s.Scheme()).WithObjects(tenantBackup()).
				WithStatusSubresource(&oadpv1alpha1.NonAdminBackup{}).Build()
			read := &oadpv1alpha1.NonAdminBackup{}
			key := types.NamespacedName{Namespace: "team", Name: "nightly"}
			require.NoError(t, c.Get(t.Context(), key, read))
			meanwhile(t, c, read)

			err := c.Status().Patch(t.Context(), statusOf(read), k8s.BoundPatch(read))
			require.True(t, apierrors.IsConflict(err), "%v", err)
			require.NoError(t, c.Get(t.Context(), key, read))
			assert.Empty(t, read.Status.Phase)
		})
	}
}
