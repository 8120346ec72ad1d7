package backup

import (
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/k8s/velero"
)

// The functions of this file change the status of a NonAdminBackup in memory and nothing else.

// ApplySeen records that the object was seen; its spec is not judged yet.
func ApplySeen(nab *oadpv1alpha1.NonAdminBackup) { advance(nab, oadpv1alpha1.NonAdminPhaseNew) }

// ApplyVerdict writes the Accepted condition for the present generation, the phase that follows from it and, for an
// accepted spec, the reference to the Velero Backup, known before that exists. An invalid edit after creation changes
// the condition only.
func ApplyVerdict(nab *oadpv1alpha1.NonAdminBackup, verdict Verdict, backupName, oadpNamespace string) {
	status := metav1.ConditionFalse
	if verdict.Accepted {
		status = metav1.ConditionTrue
	}
	setCondition(nab, oadpv1alpha1.NonAdminConditionAccepted, status, verdict.Reason, verdict.Message)
	if !verdict.Accepted {
		if !everCreated(nab) {
			advance(nab, oadpv1alpha1.NonAdminPhaseBackingOff)
		}
		if !everCreated(nab) && k8s.Waited(nab.Status.Conditions) {
			nab.Status.VeleroBackup = nil // it waited for its turn with it; nothing was made
			meta.RemoveStatusCondition(&nab.Status.Conditions, string(oadpv1alpha1.NonAdminConditionQueued))
		}
		return
	}
	advance(nab, oadpv1alpha1.NonAdminPhaseNew)
	refer(nab, backupName, oadpNamespace)
}

// ApplyCreated records that the Velero Backup exists.
func ApplyCreated(nab *oadpv1alpha1.NonAdminBackup) {
	advance(nab, oadpv1alpha1.NonAdminPhaseCreated)
	setCondition(nab, oadpv1alpha1.NonAdminConditionQueued, metav1.ConditionTrue,
		oadpv1alpha1.ReasonBackupScheduled, oadpv1alpha1.MessageBackupScheduled)
}

// ApplyWaiting records that the object waits for its turn before Velero.
func ApplyWaiting(nab *oadpv1alpha1.NonAdminBackup) {
	setCondition(nab, oadpv1alpha1.NonAdminConditionQueued, metav1.ConditionFalse,
		oadpv1alpha1.ReasonWaitingForTurn, oadpv1alpha1.MessageWaitingForTurn)
}

// ApplyMirror copies the Velero Backup's spec and status, or reports that it is gone. It writes the queue position only if that
// does not depend on other backups; otherwise the watcher keeps it.
func ApplyMirror(nab *oadpv1alpha1.NonAdminBackup, o *Objects, oadpNamespace string) {
	if o.Backup == nil || o.Backup.Status.Phase != velerov1.BackupPhaseInProgress {
		meta.RemoveStatusCondition(&nab.Status.Conditions, string(oadpv1alpha1.NonAdminConditionVeleroStalled))
	}
	if o.Backup == nil {
		applyAbsence(nab)
		return
	}
	refer(nab, o.BackupName, oadpNamespace)
	nab.Status.VeleroBackup.Spec = o.Backup.Spec.DeepCopy()
	nab.Status.VeleroBackup.Status = repeated(&o.Backup.Status)
	if position, known := velero.Position(o.Backup.Status.Phase); known {
		setQueuePosition(nab, position)
	}
	ApplyDeleteRequest(nab, o)
}

// repeated is the part of a Velero Backup's status that a tenant may read.
func repeated(status *velerov1.BackupStatus) *velerov1.BackupStatus {
	status = status.DeepCopy()
	status.ValidationErrors = check.ConcealedAll(status.ValidationErrors)
	status.FailureReason = check.Concealed(status.FailureReason)
	return status
}

// ApplyDeleteRequest copies the newest DeleteBackupRequest, if there is one.
func ApplyDeleteRequest(nab *oadpv1alpha1.NonAdminBackup, o *Objects) {
	if request := o.newestRequest(); request != nil {
		nab.Status.VeleroDeleteBackupRequest = &oadpv1alpha1.VeleroDeleteBackupRequest{
			NACUUID:   o.BackupName,
			Name:      request.Name,
			Namespace: request.Namespace,
			Status:    request.Status.DeepCopy(),
		}
	}
}

// ApplyStall records that the finished backup is in the store although Velero's object does not show it.
func ApplyStall(nab *oadpv1alpha1.NonAdminBackup) {
	setCondition(nab, oadpv1alpha1.NonAdminConditionVeleroStalled, metav1.ConditionTrue,
		oadpv1alpha1.ReasonVeleroFinalStatusLost, oadpv1alpha1.MessageVeleroStalled)
}

func applyAbsence(nab *oadpv1alpha1.NonAdminBackup) {
	if !everCreated(nab) {
		return
	}
	setQueuePosition(nab, 0)
	if nab.Status.Phase != oadpv1alpha1.NonAdminPhaseDeleting {
		gone := absence()
		setCondition(nab, oadpv1alpha1.NonAdminConditionAccepted, metav1.ConditionFalse, gone.Reason, gone.Message)
	}
}

// ApplyDeletion announces a deletion: pending after a plain delete, accepted when the spec asks for it. It reports whether the
// condition's status or message changed: a newer generation alone is no reason for another Event.
func ApplyDeletion(nab *oadpv1alpha1.NonAdminBackup) bool {
	announced := func() *metav1.Condition {
		return meta.FindStatusCondition(nab.Status.Conditions, string(oadpv1alpha1.NonAdminConditionDeleting)).DeepCopy()
	}
	advance(nab, oadpv1alpha1.NonAdminPhaseDeleting)
	before := announced()
	setCondition(nab, oadpv1alpha1.NonAdminConditionDeleting, metav1.ConditionTrue, oadpv1alpha1.ReasonDeletionPending,
		DeletionMessage(nab))
	after := announced()
	return before == nil || before.Status != after.Status || before.Message != after.Message
}

// DeletionMessage is the text about a deletion in the status and in an Event.
func DeletionMessage(nab *oadpv1alpha1.NonAdminBackup) string {
	if nab.Spec.DeleteBackup || nab.Spec.ForceDeleteBackup {
		return oadpv1alpha1.MessageBackupDeletionAccepted
	}
	return oadpv1alpha1.MessageBackupDeletionPending
}

func refer(nab *oadpv1alpha1.NonAdminBackup, name, namespace string) {
	if !owner.Claims(nab, name) {
		nab.Status.VeleroBackup = &oadpv1alpha1.VeleroBackup{}
	}
	nab.Status.VeleroBackup.NACUUID = name
	nab.Status.VeleroBackup.Name = name
	nab.Status.VeleroBackup.Namespace = namespace
}

func setQueuePosition(nab *oadpv1alpha1.NonAdminBackup, position int) {
	nab.Status.QueueInfo = &oadpv1alpha1.QueueInfo{EstimatedQueuePosition: position}
}

func setCondition(
	nab *oadpv1alpha1.NonAdminBackup, kind oadpv1alpha1.NonAdminCondition, status metav1.ConditionStatus, reason, message string,
) {
	k8s.SetCondition(&nab.Status.Conditions, nab.Generation, kind, status, reason, message)
}

func advance(nab *oadpv1alpha1.NonAdminBackup, to oadpv1alpha1.NonAdminPhase) {
	k8s.Advance(&nab.Status.Phase, to)
}
