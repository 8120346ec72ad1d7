package restore

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

// The functions of this file change the status of a NonAdminRestore in memory and nothing else.

// ApplySeen records that the object was seen; its spec is not judged yet.
func ApplySeen(nar *oadpv1alpha1.NonAdminRestore) {
	k8s.Advance(&nar.Status.Phase, oadpv1alpha1.NonAdminPhaseNew)
}

// ApplyVerdict writes the Accepted condition for the present generation, the phase that follows from it and, for an
// accepted spec, the reference to the Velero Restore, known before that exists. An invalid edit after creation changes
// the condition only.
func ApplyVerdict(nar *oadpv1alpha1.NonAdminRestore, verdict Verdict, restoreName, oadpNamespace string) {
	status := metav1.ConditionFalse
	if verdict.Accepted {
		status = metav1.ConditionTrue
	}
	setCondition(nar, oadpv1alpha1.NonAdminConditionAccepted, status, verdict.Reason, verdict.Message)
	if !verdict.Accepted {
		if !everCreated(nar) {
			k8s.Advance(&nar.Status.Phase, oadpv1alpha1.NonAdminPhaseBackingOff)
		}
		if !everCreated(nar) && k8s.Waited(nar.Status.Conditions) {
			nar.Status.VeleroRestore = nil // it waited for its turn with it; nothing was made
			meta.RemoveStatusCondition(&nar.Status.Conditions, string(oadpv1alpha1.NonAdminConditionQueued))
		}
		return
	}
	ApplySeen(nar)
	refer(nar, restoreName, oadpNamespace)
}

// ApplyCreated records that the Velero Restore exists.
func ApplyCreated(nar *oadpv1alpha1.NonAdminRestore) {
	k8s.Advance(&nar.Status.Phase, oadpv1alpha1.NonAdminPhaseCreated)
	setCondition(nar, oadpv1alpha1.NonAdminConditionQueued, metav1.ConditionTrue,
		oadpv1alpha1.ReasonRestoreScheduled, oadpv1alpha1.MessageRestoreScheduled)
}

// ApplyWaiting records that the object waits for its turn before Velero.
func ApplyWaiting(nar *oadpv1alpha1.NonAdminRestore) {
	setCondition(nar, oadpv1alpha1.NonAdminConditionQueued, metav1.ConditionFalse,
		oadpv1alpha1.ReasonWaitingForTurn, oadpv1alpha1.MessageWaitingForTurn)
}

// ApplyMirror copies the Velero Restore's status, or reports that it is gone. It writes the queue position only if that does
// not depend on other restores; otherwise the watcher keeps it.
func ApplyMirror(nar *oadpv1alpha1.NonAdminRestore, o *Objects, oadpNamespace string) {
	if o.Restore == nil || o.Restore.Status.Phase != velerov1.RestorePhaseInProgress {
		meta.RemoveStatusCondition(&nar.Status.Conditions, string(oadpv1alpha1.NonAdminConditionVeleroStalled))
	}
	if o.Restore == nil {
		applyAbsence(nar)
		return
	}
	refer(nar, o.RestoreName, oadpNamespace)
	nar.Status.VeleroRestore.Status = repeated(&o.Restore.Status)
	if position, known := velero.Position(o.Restore.Status.Phase); known {
		setQueuePosition(nar, position)
	}
}

// repeated is the part of a Velero Restore's status that a tenant may read.
func repeated(status *velerov1.RestoreStatus) *velerov1.RestoreStatus {
	status = status.DeepCopy()
	status.ValidationErrors = check.ConcealedAll(status.ValidationErrors)
	status.FailureReason = check.Concealed(status.FailureReason)
	return status
}

// ApplyStall records that the results of the restore are in the store although Velero's object does not show its end.
func ApplyStall(nar *oadpv1alpha1.NonAdminRestore) {
	setCondition(nar, oadpv1alpha1.NonAdminConditionVeleroStalled, metav1.ConditionTrue,
		oadpv1alpha1.ReasonVeleroFinalStatusLost, oadpv1alpha1.MessageVeleroRestoreStalled)
}

// ApplyDeletion announces the deletion.
func ApplyDeletion(nar *oadpv1alpha1.NonAdminRestore) {
	k8s.Advance(&nar.Status.Phase, oadpv1alpha1.NonAdminPhaseDeleting)
	setCondition(nar, oadpv1alpha1.NonAdminConditionDeleting, metav1.ConditionTrue,
		oadpv1alpha1.ReasonDeletionPending, oadpv1alpha1.MessageRestoreDeletionAccepted)
}

func applyAbsence(nar *oadpv1alpha1.NonAdminRestore) {
	if !everCreated(nar) {
		return
	}
	setQueuePosition(nar, 0)
	if nar.Status.Phase != oadpv1alpha1.NonAdminPhaseDeleting {
		gone := absence()
		setCondition(nar, oadpv1alpha1.NonAdminConditionAccepted, metav1.ConditionFalse, gone.Reason, gone.Message)
	}
}

func refer(nar *oadpv1alpha1.NonAdminRestore, name, namespace string) {
	if !owner.Claims(nar, name) {
		nar.Status.VeleroRestore = &oadpv1alpha1.VeleroRestore{}
	}
	nar.Status.VeleroRestore.NACUUID = name
	nar.Status.VeleroRestore.Name = name
	nar.Status.VeleroRestore.Namespace = namespace
}

func setQueuePosition(nar *oadpv1alpha1.NonAdminRestore, position int) {
	nar.Status.QueueInfo = &oadpv1alpha1.QueueInfo{EstimatedQueuePosition: position}
}

func setCondition(
	nar *oadpv1alpha1.NonAdminRestore, kind oadpv1alpha1.NonAdminCondition, status metav1.ConditionStatus, reason, message string,
) {
	k8s.SetCondition(&nar.Status.Conditions, nar.Generation, kind, status, reason, message)
}
