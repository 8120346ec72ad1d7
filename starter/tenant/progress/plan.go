package progress

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
)

// RunOf is the run that a plan has made for a value of annotation run-now, or for the value that has replaced it; without a name
// as long as there is none. lastBefore is the name of the run that was the last one at the time of the request.
func RunOf(plan *holdfastv1alpha1.BackupPlan, runNow, lastBefore string) (name string, state State) {
	ready := meta.FindStatusCondition(plan.Status.Conditions, holdfastv1alpha1.ConditionReady)
	if ready != nil && ready.Status == metav1.ConditionFalse && ready.ObservedGeneration == plan.Generation {
		return "", State{Phase: ready.Reason, Message: ready.Message, Outcome: Bad}
	}
	handled, requested := plan.Status.HandledRunNow, holdfastv1alpha1.RequestedRun(plan.Annotations)
	switch last := plan.Status.LastRun; {
	case handled != runNow && handled != requested:
		state = State{Phase: "waits for the plan to make the backup"}
		if ready != nil && ready.Status != metav1.ConditionTrue {
			state.Message = ready.Message
		}
		return "", state
	case last == nil || last.Name == lastBefore:
		return "", State{Phase: "made no backup", Message: "the plan's Events say why", Outcome: Bad}
	default:
		return last.Name, State{Phase: "made", Message: last.Name, Outcome: Good}
	}
}
