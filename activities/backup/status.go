package backup

import (
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/lifecycle"
	"holdfast.dev/holdfast/k8s/velero"
)

// ApplyMirror copies the Velero Backup and the newest DeleteBackupRequest.
func ApplyMirror(nab *oadpv1alpha1.NonAdminBackup, o *Objects, oadpNamespace string) {
	lifecycle.ApplyBackup(nab, o.BackupName, o.Backup, oadpNamespace)
	if o.Backup != nil {
		ApplyDeleteRequest(nab, o)
	}
}

// ApplyDeleteRequest copies the newest DeleteBackupRequest, if there is one.
func ApplyDeleteRequest(nab *oadpv1alpha1.NonAdminBackup, o *Objects) {
	if request := velero.NewestDeleteRequest(o.DeleteRequests, o.NAB, o.BackupName); request != nil {
		nab.Status.VeleroDeleteBackupRequest = &oadpv1alpha1.VeleroDeleteBackupRequest{
			NACUUID:   o.BackupName,
			Name:      request.Name,
			Namespace: request.Namespace,
			Status:    request.Status.DeepCopy(),
		}
	}
}

// ApplyDeletion announces a deletion: pending after a plain delete, accepted when the spec asks for it. It reports whether the
// announcement is another one.
func ApplyDeletion(nab *oadpv1alpha1.NonAdminBackup) bool {
	return lifecycle.ApplyDeletion(nab, DeletionMessage(nab))
}

// DeletionMessage is the text about a deletion in the status and in an Event.
func DeletionMessage(nab *oadpv1alpha1.NonAdminBackup) string {
	if nab.Spec.DeleteBackup || nab.Spec.ForceDeleteBackup {
		return oadpv1alpha1.MessageBackupDeletionAccepted
	}
	return oadpv1alpha1.MessageBackupDeletionPending
}
