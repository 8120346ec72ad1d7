package progress

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/kstatus"
	"holdfast.dev/holdfast/k8s/lifecycle"
	"holdfast.dev/holdfast/k8s/velero"
)

// Outcome is what has come of an object.
type Outcome int

// The outcomes.
const (
	// Running: it is not over.
	Running Outcome = iota
	// Good: it ended well.
	Good
	// Bad: it was refused, or ended otherwise, or does not go on unless somebody acts.
	Bad
)

// State is how far an object is.
type State struct {
	// Phase is what is happening, in a word or a few, without numbers that change all the time.
	Phase string
	// Items are those of the Kubernetes API.
	Items Count
	// Volumes is how much of their data is copied, as the object has it.
	Volumes string
	Outcome Outcome
	// Message is why it waits, or what has come of it. Empty if Phase says it all.
	Message string
}

// Count is how many of a total are done. The total is 0 as long as it is not known.
type Count struct{ Done, Total int }

// String is the state in one line.
func (s State) String() string {
	parts := []string{s.Phase}
	if s.Items.Total > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d items", s.Items.Done, s.Items.Total))
	}
	if s.Volumes != "" {
		parts = append(parts, s.Volumes)
	}
	line := strings.Join(parts, ", ")
	if s.Message != "" {
		line += ": " + s.Message
	}
	return line
}

// Of is how far an object of one of OADP's kinds is. It is over once it is Complete, or Stalled, with the generation that it has.
func Of(object client.Object) State {
	f := factsOf(object)
	state := State{Items: f.items}
	if copied := meta.FindStatusCondition(f.conditions, string(oadpv1alpha1.NonAdminConditionVolumesCopied)); copied != nil {
		state.Volumes = copied.Message
	}
	f.summarize(object)
	complete, stalled := f.holds(object, kstatus.ConditionComplete), f.holds(object, kstatus.ConditionStalled)
	reconciling := f.holds(object, kstatus.ConditionReconciling)
	switch {
	case lifecycle.DeletionRequested(object):
		state.Phase, state.Message, state.Outcome = kstatus.ReasonDeleting, "it is being deleted", Bad
	case complete != nil:
		state.Phase, state.Message, state.Outcome = complete.Reason, f.problems(), Good
	case stalled != nil:
		state.Phase, state.Message, state.Outcome = stalled.Reason, stalled.Message, Bad
		if problems := f.problems(); problems != "" {
			state.Message += " (" + problems + ")"
		}
	case reconciling != nil:
		state.Phase, state.Message = reconciling.Reason, f.waitsFor(reconciling)
	default:
		state.Phase, state.Message = kstatus.ReasonPending, "the spec is not validated yet"
	}
	return state
}

// OfDeletion is how far the deletion of a backup is, as long as the object is there.
func OfDeletion(object client.Object) State {
	state := State{Phase: kstatus.ReasonDeleting}
	nab, is := object.(*oadpv1alpha1.NonAdminBackup)
	if !is || nab.Status.VeleroDeleteBackupRequest == nil || nab.Status.VeleroDeleteBackupRequest.Status == nil {
		return state
	}
	if errors := nab.Status.VeleroDeleteBackupRequest.Status.Errors; len(errors) > 0 {
		state.Message = "Velero could not delete it; the request is repeated: " + strings.Join(errors, "; ")
	}
	return state
}

// facts are what the statuses of the kinds have in common.
type facts struct {
	conditions       []metav1.Condition
	items            Count
	errors, warnings int
	// queue is the position before, or in, Velero's queue; nil if none is known.
	queue *oadpv1alpha1.QueueInfo
	// task is the one of a restore's finalization that is at work.
	task string
}

func factsOf(object client.Object) facts {
	switch object := object.(type) {
	case *oadpv1alpha1.NonAdminBackup:
		f := facts{conditions: object.Status.Conditions, queue: object.Status.QueueInfo}
		if made := object.Status.VeleroBackup; made != nil && made.Status != nil {
			f.errors, f.warnings = made.Status.Errors, made.Status.Warnings
			if progress := made.Status.Progress; progress != nil {
				f.items = Count{progress.ItemsBackedUp, progress.TotalItems}
			}
		}
		return f
	case *oadpv1alpha1.NonAdminRestore:
		f := facts{conditions: object.Status.Conditions, queue: object.Status.QueueInfo}
		if made := object.Status.VeleroRestore; made != nil && made.Status != nil {
			f.errors, f.warnings = made.Status.Errors, made.Status.Warnings
			if progress := made.Status.Progress; progress != nil {
				f.items = Count{progress.ItemsRestored, progress.TotalItems}
			}
		}
		f.addFinalization(object.Status.Finalization)
		return f
	case *oadpv1alpha1.NonAdminDownloadRequest:
		return facts{conditions: object.Status.Conditions}
	}
	return facts{}
}

func (f *facts) addFinalization(finalization *oadpv1alpha1.RestoreFinalization) {
	if finalization == nil {
		return
	}
	f.errors, f.warnings = f.errors+finalization.Errors, f.warnings+finalization.Warnings
	for _, task := range finalization.Tasks {
		if task.Phase == oadpv1alpha1.FinalizationPhaseInProgress {
			f.task = task.Name
		}
	}
}

// summarize adds the conditions that sum the others up, if Holdfast has not: an object that was over before Holdfast knew these
// conditions is left without.
func (f *facts) summarize(object client.Object) {
	if meta.FindStatusCondition(f.conditions, kstatus.ConditionComplete) == nil {
		summarized := object.DeepCopyObject().(client.Object)
		kstatus.Summarize(object, summarized)
		f.conditions = factsOf(summarized).conditions
	}
}

// holds returns a condition that is True with the object's present generation; nil if it is not.
func (f *facts) holds(object client.Object, kind string) *metav1.Condition {
	condition := meta.FindStatusCondition(f.conditions, kind)
	if condition == nil || condition.Status != metav1.ConditionTrue || condition.ObservedGeneration != object.GetGeneration() {
		return nil
	}
	return condition
}

// waitsFor is what an object waits for that is not over. Where Velero is at work, the numbers say more than the message.
func (f *facts) waitsFor(reconciling *metav1.Condition) string {
	switch waits := reconciling.Reason == kstatus.ReasonPending || reconciling.Reason == oadpv1alpha1.ReasonWaitingForTurn; {
	case waits && f.queue != nil && f.queue.EstimatedQueuePosition > 0:
		return fmt.Sprintf("position %d", f.queue.EstimatedQueuePosition)
	case f.task != "":
		return "task " + f.task
	case velero.StateOf(reconciling.Reason) != velero.StateUnknown:
		return ""
	}
	return reconciling.Message
}

// problems are how many there were; empty if there were none.
func (f *facts) problems() string {
	var parts []string
	for _, part := range []struct {
		count int
		noun  string
	}{{f.errors, "error"}, {f.warnings, "warning"}} {
		switch part.count {
		case 0:
		case 1:
			parts = append(parts, "1 "+part.noun)
		default:
			parts = append(parts, fmt.Sprintf("%d %ss", part.count, part.noun))
		}
	}
	return strings.Join(parts, ", ")
}
