package backup_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/velero"
	backupworkflow "holdfast.dev/holdfast/workflows/backup"
)

// tenantsLocation is one whose BackupStorageLocation is called made.
func tenantsLocation(made string, beingDeleted bool) *oadpv1alpha1.NonAdminBackupStorageLocation {
	location := &oadpv1alpha1.NonAdminBackupStorageLocation{
		ObjectMeta: metav1.ObjectMeta{Namespace: fake.Namespace, Name: "own", UID: "uid-own"},
		Status: oadpv1alpha1.NonAdminBackupStorageLocationStatus{
			VeleroBackupStorageLocation: &oadpv1alpha1.VeleroBackupStorageLocation{NACUUID: made},
		},
	}
	if beingDeleted {
		location.Finalizers = []string{oadpv1alpha1.NabslFinalizer}
	}
	return location
}

func TestALocationThatIsGoneMattersToAPlainDeleteOnly(t *testing.T) {
	tests := map[string]struct {
		change   func(*oadpv1alpha1.NonAdminBackup)
		tenants  *oadpv1alpha1.NonAdminBackupStorageLocation // of the name that the NonAdminBackup gives
		location string
		want     bool
	}{
		"plain delete": {location: "gone", want: true},
		"plain delete, the tenant's location going too":      {tenants: tenantsLocation("gone", true), location: "gone", want: true},
		"plain delete, another location of that name":        {tenants: tenantsLocation("another", false), location: "gone", want: true},
		"plain delete, revoked or deleted by hand":           {tenants: tenantsLocation("gone", false), location: "gone"},
		"plain delete, in a location of the administrator's": {change: func(nab *oadpv1alpha1.NonAdminBackup) { nab.Spec.BackupSpec.StorageLocation = "" }, location: "gone"},
		"plain delete, it is there":                          {location: "there"},
		"plain delete, Velero has not chosen one":            {},
		"no delete":    {change: func(nab *oadpv1alpha1.NonAdminBackup) { nab.DeletionTimestamp = nil }, location: "gone"},
		"deleteBackup": {change: func(nab *oadpv1alpha1.NonAdminBackup) { nab.Spec.DeleteBackup = true }, location: "gone"},
		"forceDeleteBackup, which needs no excuse": {change: func(nab *oadpv1alpha1.NonAdminBackup) { nab.Spec.ForceDeleteBackup = true }, location: "gone"},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			nab := fake.NAB("nightly")
			nab.Finalizers = []string{oadpv1alpha1.NabFinalizer}
			nab.DeletionTimestamp = &metav1.Time{Time: time.Now()}
			nab.Spec.BackupSpec.StorageLocation = "own"
			if test.change != nil {
				test.change(nab)
			}
			velero := velero.NewBackup(nab, fake.VeleroName("nightly"), fake.OADPNamespace,
				velerov1.BackupSpec{StorageLocation: test.location})
			w := fake.New(t, nab, velero, &velerov1.BackupStorageLocation{
				ObjectMeta: metav1.ObjectMeta{Namespace: fake.OADPNamespace, Name: "there"},
			})
			if test.tenants != nil {
				require.NoError(t, w.Client.Create(t.Context(), test.tenants))
				if len(test.tenants.Finalizers) > 0 {
					require.NoError(t, w.Client.Delete(t.Context(), test.tenants))
				}
			}
			objects, err := w.Backups.Gatherer.Gather(t.Context(), fake.Ref("nightly"))
			require.NoError(t, err)
			assert.Equal(t, test.want, objects.LocationGone)
			view := objects.View(time.Now())
			assert.Equal(t, test.want, view.LocationGone)
			if test.want {
				assert.False(t, backupworkflow.Settled(view))
			}
			if test.location != "" && test.want {
				w.FailReads(func(object runtime.Object) error {
					if _, is := object.(*velerov1.BackupStorageLocation); is {
						return fake.ErrAway
					}
					return nil
				})
				_, err = w.Backups.Gatherer.Gather(t.Context(), fake.Ref("nightly"))
				require.ErrorIs(t, err, fake.ErrAway, "not known is not gone")
			}
		})
	}
}
