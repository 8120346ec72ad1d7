package watchtest

import (
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/lifecycle"
	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/k8s/velero"
)

// Noon is when Velero's objects were made.
var Noon = metav1.NewTime(time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC))

// Tracked turns a new NonAdminBackup into a created one, with the Velero Backup that was made for it.
func Tracked(
	nab *oadpv1alpha1.NonAdminBackup, name, oadpNamespace string, phase velerov1.BackupPhase,
) (*oadpv1alpha1.NonAdminBackup, *velerov1.Backup) {
	nab.Finalizers = []string{oadpv1alpha1.NabFinalizer}
	made := velero.NewBackup(nab, name, oadpNamespace, velerov1.BackupSpec{})
	made.UID, made.CreationTimestamp, made.Status.Phase = "uid-of-the-backup", Noon, phase
	verdict := check.Verdict{Accepted: true, Reason: "BackupAccepted", Message: "backup accepted"}
	lifecycle.ApplyVerdict(nab, verdict, made.Name, oadpNamespace)
	lifecycle.ApplyCreated(nab)
	lifecycle.ApplyBackup(nab, made.Name, made, oadpNamespace)
	return nab, made
}

// KeptBack turns a new NonAdminBackup into one in BackingOff, for its spec.
func KeptBack(nab *oadpv1alpha1.NonAdminBackup) *oadpv1alpha1.NonAdminBackup {
	nab.Spec.BackupSpec.ExcludedNamespaces = []string{"x"}
	lifecycle.ApplyVerdict(nab, check.Verdict{
		Reason: "InvalidBackupSpec", Message: "NonAdminBackup spec.backupSpec.excludedNamespaces is restricted",
	}, "", "")
	return nab
}

// Restored turns a new NonAdminRestore into a created one, with the Velero Restore that was made for it.
func Restored(
	nar *oadpv1alpha1.NonAdminRestore, name, oadpNamespace string, phase velerov1.RestorePhase,
) (*oadpv1alpha1.NonAdminRestore, *velerov1.Restore) {
	nar.Finalizers = []string{oadpv1alpha1.NarFinalizer}
	made := velero.NewRestore(nar, name, oadpNamespace, velerov1.RestoreSpec{})
	made.UID, made.CreationTimestamp, made.Status.Phase = "uid-of-the-restore", Noon, phase
	verdict := check.Verdict{Accepted: true, Reason: "RestoreAccepted", Message: "restore accepted"}
	lifecycle.ApplyVerdict(nar, verdict, made.Name, oadpNamespace)
	lifecycle.ApplyCreated(nar)
	lifecycle.ApplyRestore(nar, made.Name, made, oadpNamespace)
	return nar, made
}
