package gather

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/k8s/velero"
	"holdfast.dev/holdfast/workflows/contract"
)

// MaxBytes is the size of a RestoreDrill as JSON at most: the rest of what etcd takes is for the status. unwritable is the size
// from which no status is written: it might be refused, and what was made must go all the same.
const (
	MaxBytes   = 512 << 10
	unwritable = 1400 << 10
)

// View reduces the objects to the facts that decide the next step.
func (o *Objects) View() contract.DrillView {
	view := contract.DrillView{
		Namespace:            o.Wanted,
		NamespaceExists:      o.Namespace != nil,
		NamespaceTerminating: o.Namespace != nil && !o.Namespace.DeletionTimestamp.IsZero(),
		Occupied:             o.Occupied != "",
		Velero:               contract.VeleroDrillView{Name: o.Name},
	}
	view.Namespace.Ref, view.Namespace.Name = o.Ref, o.Name
	if o.Restore != nil {
		phase := o.Restore.Status.Phase
		view.Velero.Exists, view.Velero.Phase = true, string(phase)
		view.Velero.BeingDeleted = !o.Restore.DeletionTimestamp.IsZero()
		view.Velero.Finished, view.Velero.Restored = velero.Finished(phase), velero.Usable(phase)
	}
	if o.Drill == nil {
		return view
	}
	size := check.Size(o.Drill)
	view.Oversized, view.Unwritable = size > MaxBytes, size > unwritable
	if view.Ahead = len(o.Ahead); view.Ahead > 0 {
		view.Oldest = o.Ahead[0]
	}
	status := &o.Drill.Status
	view.Found, view.BeingDeleted = true, !o.Drill.DeletionTimestamp.IsZero()
	view.Phase = string(status.Phase)
	view.Admitted = status.Backup != ""
	view.Velero.Begun = status.Started != nil
	view.AwaitsTurn = AwaitsTurn(o.Drill)
	view.Concluded, view.Ended = status.Concluded != nil, status.Phase == holdfastv1alpha1.DrillEnded
	if verified := meta.FindStatusCondition(status.Conditions, holdfastv1alpha1.ConditionVerified); verified != nil {
		view.Verified = string(verified.Status)
	}
	if deadline := o.deadline(); !deadline.IsZero() {
		view.Deadline, view.Late = deadline.Unix(), !o.At.Before(deadline)
	}
	if status.KeptUntil != nil {
		view.KeptUntil, view.Kept = status.KeptUntil.Unix(), o.At.Before(status.KeptUntil.Time)
	}
	if due := Pending(status); due != nil {
		view.Check = due.Name
	}
	return view
}

// deadline is when the time is over: for the restore and the checks since Velero has begun, for Velero to begin since it has the
// restore, and before that for the restore to be made since there is a namespace, which others wait for.
func (o *Objects) deadline() time.Time {
	timeout := DurationOf(o.Drill.Spec.Timeout)
	switch started := o.Drill.Status.Started; {
	case started != nil && o.Restore != nil && o.Restore.Status.StartTimestamp != nil:
		return o.Restore.Status.StartTimestamp.Add(timeout)
	case started != nil:
		return started.Add(timeout)
	case o.Namespace != nil:
		return o.Namespace.CreationTimestamp.Add(timeout)
	}
	return time.Time{}
}

// DurationOf reads a duration that the API server has validated.
func DurationOf(text string) time.Duration {
	duration, _ := time.ParseDuration(text) // zero if it is empty
	return duration
}

// AwaitsTurn reports whether the status of a drill says that it waits for its turn before Velero.
func AwaitsTurn(drill *holdfastv1alpha1.RestoreDrill) bool {
	queued := meta.FindStatusCondition(drill.Status.Conditions, holdfastv1alpha1.ConditionQueued)
	return queued != nil && queued.Reason == holdfastv1alpha1.ReasonWaitingForTurn &&
		drill.Status.Started == nil && drill.Status.Concluded == nil && drill.DeletionTimestamp.IsZero()
}

// Pending is the first check without a result; nil if all have one.
func Pending(status *holdfastv1alpha1.RestoreDrillStatus) *holdfastv1alpha1.DrillCheck {
	for i := range status.Checks {
		if status.Checks[i].Result == holdfastv1alpha1.DrillPending {
			return &status.Checks[i]
		}
	}
	return nil
}
