package owner

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

// Claimed is the name in the status of a tenant's object for the object made for it. It is empty if the name is invalid: the
// API server would not answer "not found" to a request for it. Anyone who can write the status can write any name.
func Claimed(by metav1.Object) string {
	claimed := Written(by)
	if len(validation.IsDNS1123Subdomain(claimed)) > 0 {
		return ""
	}
	return claimed
}

// Claims reports whether the status of a tenant's object names this object as the one made for it.
func Claims(by metav1.Object, name string) bool { return name != "" && Claimed(by) == name }

// Written is Claimed without the check, to be shown.
func Written(by metav1.Object) string {
	switch object := by.(type) {
	case *oadpv1alpha1.NonAdminBackup:
		if object != nil && object.Status.VeleroBackup != nil {
			return object.Status.VeleroBackup.NACUUID
		}
	case *oadpv1alpha1.NonAdminRestore:
		if object != nil && object.Status.VeleroRestore != nil {
			return object.Status.VeleroRestore.NACUUID
		}
	case *oadpv1alpha1.NonAdminBackupStorageLocation:
		if object != nil && object.Status.VeleroBackupStorageLocation != nil {
			return object.Status.VeleroBackupStorageLocation.NACUUID
		}
	}
	return ""
}

// SyncedFrom is the Velero Backup from which a NonAdminBackup says it was synced; empty if it names none.
func SyncedFrom(by metav1.Object) string {
	if label := by.GetLabels()[oadpv1alpha1.NabSyncLabel]; validValue(label) {
		return label
	}
	return ""
}

// SyncedLabels are the labels of a NonAdminBackup that is created for the Velero Backup of that name.
func SyncedLabels(nacuuid string) map[string]string {
	return map[string]string{oadpv1alpha1.NabSyncLabel: nacuuid}
}
