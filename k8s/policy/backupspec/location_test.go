package backupspec

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/k8s/policy/policytest"
)

func TestStorageLocations(t *testing.T) {
	const notFound = "VeleroBackupStorageLocation with NACUUID team-a-store-0a1b2c3d not found in the OADP namespace"
	const noUUID = "unable to get VeleroBackupStorageLocation UUID from NonAdminBackupStorageLocation Status"
	const notCreated = "NonAdminBackupStorageLocation is not in created state and can not be used for the NonAdminBackup"
	type nabsl = oadpv1alpha1.NonAdminBackupStorageLocation
	type bsl = velerov1.BackupStorageLocation
	notApproved := func(n *nabsl) {
		n.Status.Conditions = []metav1.Condition{{
			Type: string(oadpv1alpha1.NonAdminConditionClusterAdminApproved), Status: metav1.ConditionFalse, Message: "approval pending",
		}}
	}
	tests := map[string]struct {
		change       func(*nabsl)
		changeVelero func(*bsl)
		want         string
	}{
		"a location that is ready": {},
		"one in another namespace": {
			change: func(n *nabsl) { n.Namespace = "team-b" },
			want: "NonAdminBackupStorageLocation not found in the namespace: " +
				`nonadminbackupstoragelocations.oadp.openshift.io "store" not found`,
		},
		"one that backs off since a change of it was rejected": {
			change: func(n *nabsl) { n.Status.Phase = oadpv1alpha1.NonAdminPhaseBackingOff; notApproved(n) },
		},
		"one a change of which waits for approval": {
			change: func(n *nabsl) { n.Status.Phase = oadpv1alpha1.NonAdminPhaseNew; notApproved(n) },
		},
		"one that is being deleted": {
			change: func(n *nabsl) {
				n.DeletionTimestamp, n.Finalizers = &metav1.Time{Time: time.Now()}, []string{"x.dev/y"}
			},
			want: "NonAdminBackupStorageLocation is being deleted and can not be used for the NonAdminBackup",
		},
		"one that backs off and was never made": {
			change: func(n *nabsl) {
				n.Status.Phase, n.Status.VeleroBackupStorageLocation = oadpv1alpha1.NonAdminPhaseBackingOff, nil
			},
			want: notCreated,
		},
		"one that waits for its first approval": {
			change:       func(n *nabsl) { n.Status.Phase = oadpv1alpha1.NonAdminPhaseNew; notApproved(n) },
			changeVelero: func(b *bsl) { b.Namespace = "elsewhere" },
			want:         notCreated + ": approval pending",
		},
		"one that is approved and not yet made": {
			change: func(n *nabsl) {
				n.Status.Phase = oadpv1alpha1.NonAdminPhaseNew
				notApproved(n)
				n.Status.Conditions[0].Status = metav1.ConditionTrue
			},
			changeVelero: func(b *bsl) { b.Namespace = "elsewhere" },
			want:         notCreated,
		},
		"one that is not created, with a forged status": {
			change:       func(n *nabsl) { n.Status.Phase = oadpv1alpha1.NonAdminPhaseNew },
			changeVelero: func(b *bsl) { b.Annotations[oadpv1alpha1.NabslOriginNamespaceAnnotation] = "team-b" },
			want:         notCreated,
		},
		"one that backs off and whose Velero location is unavailable": {
			change:       func(n *nabsl) { n.Status.Phase = oadpv1alpha1.NonAdminPhaseBackingOff },
			changeVelero: func(b *bsl) { b.Status.Phase = velerov1.BackupStorageLocationPhaseUnavailable },
			want: "VeleroBackupStorageLocation with NACUUID team-a-store-0a1b2c3d is not in available state " +
				"and can not be used for the NonAdminBackup",
		},
		"one that knows no Velero location": {
			change: func(n *nabsl) { n.Status.VeleroBackupStorageLocation = nil }, want: noUUID,
		},
		"one whose Velero location has no NACUUID": {
			change: func(n *nabsl) { n.Status.VeleroBackupStorageLocation.NACUUID = "" }, want: noUUID,
		},
		"one whose Velero location is missing": {changeVelero: func(b *bsl) { b.Namespace = "elsewhere" }, want: notFound},
		"one whose Velero location is unavailable": {
			changeVelero: func(b *bsl) { b.Status.Phase = velerov1.BackupStorageLocationPhaseUnavailable },
			want: "VeleroBackupStorageLocation with NACUUID team-a-store-0a1b2c3d is not in available state " +
				"and can not be used for the NonAdminBackup",
		},
		"one whose Velero location was never checked": {
			changeVelero: func(b *bsl) { b.Status.Phase = "" },
			want: "VeleroBackupStorageLocation with NACUUID team-a-store-0a1b2c3d is not in available state " +
				"and can not be used for the NonAdminBackup",
		},
		"a forged status that names another tenant's location": {
			changeVelero: func(b *bsl) { b.Annotations[oadpv1alpha1.NabslOriginNamespaceAnnotation] = "team-b" }, want: notFound,
		},
		"a forged status that names another location of the tenant's": {
			changeVelero: func(b *bsl) { b.Annotations[oadpv1alpha1.NabslOriginNameAnnotation] = "archive" }, want: notFound,
		},
		"a forged status that names the administrator's location": {
			changeVelero: func(b *bsl) { b.Annotations, b.Labels = nil, nil }, want: notFound,
		},
		"a Velero location with another label": {
			changeVelero: func(b *bsl) { b.Labels[oadpv1alpha1.NabslOriginNACUUIDLabel] = "other" }, want: notFound,
		},
		"a Velero location that is not marked as made for tenants": {
			changeVelero: func(b *bsl) { delete(b.Labels, oadpv1alpha1.OadpLabel) }, want: notFound,
		},
		"a forged status with a path": {
			change: func(n *nabsl) { n.Status.VeleroBackupStorageLocation.NACUUID = "../secrets" },
			want:   "VeleroBackupStorageLocation with NACUUID ../secrets not found in the OADP namespace",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			location, velero := tenantsStore(), policytest.VeleroStore()
			if tt.change != nil {
				tt.change(location)
			}
			if tt.changeVelero != nil {
				tt.changeVelero(velero)
			}
			nab := policytest.BackupOf(&velerov1.BackupSpec{StorageLocation: "store"})
			reader := readerOf(t, location, velero)

			got, err := backupLocation(t.Context(), reader, policytest.OADPNamespace, nab)
			same, verdict := Validate(t.Context(), reader, policytest.OADPNamespace, nab, policy.Policy{})
			require.Equal(t, err, verdict)
			require.Equal(t, got, same)
			if tt.want == "" {
				require.NoError(t, err)
				require.Equal(t, policytest.NACUUID, got)
				return
			}
			policytest.RequireVerdict(t, err, tt.want, true)
			require.True(t, SpeaksOfLocation(err.Error()))
		})
	}
}

func TestOtherVerdictsDoNotSpeakOfALocation(t *testing.T) {
	for _, spec := range []*velerov1.BackupSpec{
		nil,
		{ExcludedNamespaces: []string{"VeleroBackupStorageLocation "}},
		{VolumeSnapshotLocations: []string{"VeleroBackupStorageLocation "}},
		{StorageLocation: "a/b"},
	} {
		_, err := Validate(t.Context(), readerOf(t), policytest.OADPNamespace, policytest.BackupOf(spec), policy.Policy{})
		require.Error(t, err)
		require.False(t, SpeaksOfLocation(err.Error()), err.Error())
	}
}

func TestABackupWithoutLocationGoesToTheDefault(t *testing.T) {
	for name, spec := range map[string]*velerov1.BackupSpec{"no location": {}, "no spec": nil} {
		t.Run(name, func(t *testing.T) {
			got, err := backupLocation(t.Context(), nil, policytest.OADPNamespace, policytest.BackupOf(spec))
			require.NoError(t, err)
			require.Empty(t, got)
		})
	}
}

func TestAVeleroLocationThatCannotBeReadIsNoVerdict(t *testing.T) {
	down := errors.New("connection refused")
	reader := interceptor.NewClient(fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(tenantsStore()).Build(),
		interceptor.Funcs{
			Get: func(
				ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, _ ...client.GetOption,
			) error {
				if _, isVelero := object.(*velerov1.BackupStorageLocation); isVelero {
					return down
				}
				return c.Get(ctx, key, object)
			},
		})
	_, err := backupLocation(t.Context(), reader, policytest.OADPNamespace, policytest.BackupOf(&velerov1.BackupSpec{StorageLocation: "store"}))
	require.ErrorIs(t, err, down)
	require.EqualError(t, err, "get Velero BackupStorageLocation openshift-adp/team-a-store-0a1b2c3d: connection refused")
}
