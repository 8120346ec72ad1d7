package finalization

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/metrics"
	"holdfast.dev/holdfast/k8s/shorten"
)

// record writes Events that the finalization began or ended, once and best effort, and counts its end. Where OADP's CRD is
// installed, no later record knows what an earlier one said: there only the end counts.
func (f *Activities) record(before, after *oadpv1alpha1.NonAdminRestore, is *oadpv1alpha1.RestoreFinalization) {
	was := before.Status.Finalization
	if is == nil || (after.Status.Finalization == nil && !is.Phase.Final()) {
		return
	}
	countTasks(was, is)
	var known oadpv1alpha1.FinalizationPhase
	if was != nil {
		known = was.Phase
	}
	condition := meta.FindStatusCondition(after.Status.Conditions, string(oadpv1alpha1.NonAdminConditionFinalized))
	if condition == nil || (known != "" && !is.Phase.Final()) || known == is.Phase {
		return
	}
	kind := corev1.EventTypeNormal
	if is.Phase == oadpv1alpha1.FinalizationPhasePartiallyFailed || is.Warnings > 0 {
		kind = corev1.EventTypeWarning
	}
	f.Events.Eventf(after, nil, kind, condition.Reason, "Finalize", "%s", shorten.Text(condition.Message, shorten.MaxEventNoteBytes))
	if is.Phase.Final() {
		metrics.RestoreFinalized(took(is.StartTimestamp, is.CompletionTimestamp))
		metrics.Restores.Finished(string(is.Phase), after.CreationTimestamp.Time)
	}
}

func countTasks(was, is *oadpv1alpha1.RestoreFinalization) {
	ended := map[string]bool{}
	if was != nil {
		for _, task := range was.Tasks {
			ended[task.Name] = task.Phase.Final()
		}
	}
	for _, task := range is.Tasks {
		if task.Phase.Final() && !ended[task.Name] {
			metrics.FinalizationTaskEnded(task.Name, string(task.Phase), took(task.StartTimestamp, task.CompletionTimestamp))
		}
	}
}

func took(began, ended *metav1.Time) time.Duration {
	if began == nil || ended == nil {
		return 0
	}
	return ended.Sub(began.Time)
}
