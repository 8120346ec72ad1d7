package lifecycle

import (
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/k8s/velero"
)

// The functions of this file change the status of a NonAdminBackup or NonAdminRestore in memory and nothing else.

// phaseRank orders the phases: a phase never goes back (docs/tenants.md, "Phases"). BackingOff is left for Created directly.
var phaseRank = map[oadpv1alpha1.NonAdminPhase]int{
	oadpv1alpha1.NonAdminPhaseNew:        1,
	oadpv1alpha1.NonAdminPhaseBackingOff: 2,
	oadpv1alpha1.NonAdminPhaseCreated:    3,
	oadpv1alpha1.NonAdminPhaseDeleting:   4,
}

// Advance moves the phase forward, and never back.
func Advance(object client.Object, to oadpv1alpha1.NonAdminPhase) {
	if phase := of(object).phase; phaseRank[to] > phaseRank[*phase] {
		*phase = to
	}
}

func (r record) set(condition oadpv1alpha1.NonAdminCondition, status metav1.ConditionStatus, reason, message string) {
	k8s.SetCondition(r.conditions, r.GetGeneration(), condition, status, reason, message)
}

// ApplySeen records that the object was seen; its spec is not judged yet.
func ApplySeen(object client.Object) { Advance(object, oadpv1alpha1.NonAdminPhaseNew) }

// ApplyVerdict writes the Accepted condition for the present generation, the phase that follows from it and, for an
// accepted spec, the reference to the Velero object, known before that exists. An invalid edit after creation changes
// the condition only.
func ApplyVerdict(object client.Object, verdict check.Verdict, name, oadpNamespace string) {
	r, status := of(object), metav1.ConditionFalse
	if verdict.Accepted {
		status = metav1.ConditionTrue
	}
	r.set(oadpv1alpha1.NonAdminConditionAccepted, status, verdict.Reason, verdict.Message)
	switch {
	case verdict.Accepted:
		ApplySeen(object)
		refer(object, name, oadpNamespace)
	case !EverCreated(object):
		Advance(object, oadpv1alpha1.NonAdminPhaseBackingOff)
		if k8s.Waited(*r.conditions) { // it waited for its turn with the reference; nothing was made
			forget(object)
			meta.RemoveStatusCondition(r.conditions, string(oadpv1alpha1.NonAdminConditionQueued))
		}
	}
}

// ApplyCreated records that the Velero object exists.
func ApplyCreated(object client.Object) {
	r := of(object)
	Advance(object, oadpv1alpha1.NonAdminPhaseCreated)
	r.set(oadpv1alpha1.NonAdminConditionQueued, metav1.ConditionTrue, r.kind.scheduled.Reason, r.kind.scheduled.Message)
}

// ApplyWaiting records that the object waits for its turn before Velero.
func ApplyWaiting(object client.Object) {
	of(object).set(oadpv1alpha1.NonAdminConditionQueued, metav1.ConditionFalse,
		oadpv1alpha1.ReasonWaitingForTurn, oadpv1alpha1.MessageWaitingForTurn)
}

// ApplyStall records that what Velero writes at the end is in the store although Velero's object does not show its end.
func ApplyStall(object client.Object) {
	r := of(object)
	r.set(oadpv1alpha1.NonAdminConditionVeleroStalled, metav1.ConditionTrue,
		oadpv1alpha1.ReasonVeleroFinalStatusLost, r.kind.stalled)
}

// ApplyBackup copies the spec and the status of the Velero Backup of that name, or reports that it is gone, if it is nil. It
// writes the queue position only if that does not depend on other backups; otherwise the watcher keeps it.
func ApplyBackup(nab *oadpv1alpha1.NonAdminBackup, name string, made *velerov1.Backup, oadpNamespace string) {
	if made == nil {
		applyAbsence(nab)
		return
	}
	applyMade(nab, name, oadpNamespace, made.Status.Phase)
	status := made.Status.DeepCopy()
	conceal(&status.FailureReason, &status.ValidationErrors)
	nab.Status.VeleroBackup.Spec, nab.Status.VeleroBackup.Status = made.Spec.DeepCopy(), status
}

// ApplyRestore does the same for a Velero Restore, whose spec is not copied.
func ApplyRestore(nar *oadpv1alpha1.NonAdminRestore, name string, made *velerov1.Restore, oadpNamespace string) {
	if made == nil {
		applyAbsence(nar)
		return
	}
	applyMade(nar, name, oadpNamespace, made.Status.Phase)
	status := made.Status.DeepCopy()
	conceal(&status.FailureReason, &status.ValidationErrors)
	nar.Status.VeleroRestore.Status = status
}

// conceal leaves what a tenant may read.
func conceal(reason *string, errors *[]string) {
	*reason, *errors = check.Concealed(*reason), check.ConcealedAll(*errors)
}

func applyMade[P ~string](object client.Object, name, oadpNamespace string, phase P) {
	r := of(object)
	if velero.StateOf(phase) != velero.StateInProgress {
		meta.RemoveStatusCondition(r.conditions, string(oadpv1alpha1.NonAdminConditionVeleroStalled))
	}
	refer(object, name, oadpNamespace)
	if position, known := velero.Position(phase); known {
		*r.queue = &oadpv1alpha1.QueueInfo{EstimatedQueuePosition: position}
	}
}

func applyAbsence(object client.Object) {
	r := of(object)
	meta.RemoveStatusCondition(r.conditions, string(oadpv1alpha1.NonAdminConditionVeleroStalled))
	if !EverCreated(object) {
		return
	}
	*r.queue = &oadpv1alpha1.QueueInfo{}
	if *r.phase != oadpv1alpha1.NonAdminPhaseDeleting {
		gone := r.kind.absent
		r.set(oadpv1alpha1.NonAdminConditionAccepted, metav1.ConditionFalse, gone.Reason, gone.Message)
	}
}

// ApplyDeletion announces a deletion with a message. It reports whether the condition's status or message changed: a newer
// generation alone is no reason for another Event.
func ApplyDeletion(object client.Object, message string) bool {
	r := of(object)
	announced := func() *metav1.Condition {
		return meta.FindStatusCondition(*r.conditions, string(oadpv1alpha1.NonAdminConditionDeleting)).DeepCopy()
	}
	Advance(object, oadpv1alpha1.NonAdminPhaseDeleting)
	before := announced()
	r.set(oadpv1alpha1.NonAdminConditionDeleting, metav1.ConditionTrue, oadpv1alpha1.ReasonDeletionPending, message)
	after := announced()
	return before == nil || before.Status != after.Status || before.Message != after.Message
}

// refer writes the reference to the Velero object. What was copied from another one is not kept.
func refer(object client.Object, name, namespace string) {
	if !owner.Claims(object, name) {
		forget(object)
	}
	switch object := object.(type) {
	case *oadpv1alpha1.NonAdminBackup:
		if object.Status.VeleroBackup == nil {
			object.Status.VeleroBackup = &oadpv1alpha1.VeleroBackup{}
		}
		made := object.Status.VeleroBackup
		made.NACUUID, made.Name, made.Namespace = name, name, namespace
	case *oadpv1alpha1.NonAdminRestore:
		if object.Status.VeleroRestore == nil {
			object.Status.VeleroRestore = &oadpv1alpha1.VeleroRestore{}
		}
		made := object.Status.VeleroRestore
		made.NACUUID, made.Name, made.Namespace = name, name, namespace
	}
}

func forget(object client.Object) {
	switch object := object.(type) {
	case *oadpv1alpha1.NonAdminBackup:
		object.Status.VeleroBackup = nil
	case *oadpv1alpha1.NonAdminRestore:
		object.Status.VeleroRestore, object.Status.Finalization = nil, nil
		meta.RemoveStatusCondition(&object.Status.Conditions, string(oadpv1alpha1.NonAdminConditionFinalized))
	}
}
