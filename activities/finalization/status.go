package finalization

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/lifecycle"
	"holdfast.dev/holdfast/k8s/shorten"
	"holdfast.dev/holdfast/workflows/contract"
)

// Apply writes a record to the status, with condition Finalized. The result of a finalization that has ended does not change.
func Apply(nar *oadpv1alpha1.NonAdminRestore, record contract.FinalizationRecord) {
	if lifecycle.FinalPhase(nar) != "" {
		return
	}
	finalization := &oadpv1alpha1.RestoreFinalization{
		Phase:               oadpv1alpha1.FinalizationPhase(record.Phase),
		StartTimestamp:      timestamp(record.StartedAt),
		CompletionTimestamp: timestamp(record.EndedAt),
		Warnings:            record.Warnings,
		Errors:              record.Errors,
		VeleroErrors:        record.VeleroErrors,
	}
	for _, task := range record.Tasks {
		finalization.Tasks = append(finalization.Tasks, oadpv1alpha1.FinalizationTask{
			Name: task.Name, Phase: oadpv1alpha1.FinalizationPhase(task.Phase),
			StartTimestamp: timestamp(task.StartedAt), CompletionTimestamp: timestamp(task.EndedAt),
			Warnings: task.Warnings, Errors: task.Errors,
		})
	}
	nar.Status.Finalization = finalization
	status, reason := metav1.ConditionFalse, oadpv1alpha1.ReasonFinalizing
	switch finalization.Phase {
	case oadpv1alpha1.FinalizationPhaseCompleted:
		status, reason = metav1.ConditionTrue, oadpv1alpha1.ReasonFinalizationCompleted
	case oadpv1alpha1.FinalizationPhasePartiallyFailed:
		status, reason = metav1.ConditionTrue, oadpv1alpha1.ReasonFinalizationPartiallyFailed
	}
	k8s.SetCondition(&nar.Status.Conditions, nar.Generation, oadpv1alpha1.NonAdminConditionFinalized, status, reason,
		shorten.Text(message(finalization, record.Problem), maxMessageBytes))
	if text := filteredMessage(record.LeftOut, record.Refused, record.Shadowed); text != "" {
		k8s.SetCondition(&nar.Status.Conditions, nar.Generation, oadpv1alpha1.NonAdminConditionFiltered, metav1.ConditionTrue,
			oadpv1alpha1.ReasonNotAllowedFromTenantsLocation, text)
	}
}

// maxMessageBytes keeps a condition readable; the API server accepts 32 KiB.
const maxMessageBytes = 1024

// message says in a sentence how far a finalization is, with the most important problem.
func message(f *oadpv1alpha1.RestoreFinalization, problem string) string {
	text := oadpv1alpha1.MessageFinalizing
	if f.Phase.Final() {
		text = fmt.Sprintf("the finalization is complete: %d errors and %d warnings after Velero's", f.Errors, f.Warnings)
		if len(f.VeleroErrors) > 0 {
			text += "; Velero's first error: " + f.VeleroErrors[0]
		}
	}
	if first := firstLine(f.Tasks); first != "" {
		text += "; first: " + first
	}
	if problem != "" {
		text += "; the restore's results in the object store do not contain them: " + problem
	}
	return text
}

// firstLine is the first error of the tasks, or else their first warning.
func firstLine(tasks []oadpv1alpha1.FinalizationTask) string {
	for _, task := range tasks {
		if len(task.Errors) > 0 {
			return task.Errors[0]
		}
	}
	for _, task := range tasks {
		if len(task.Warnings) > 0 {
			return task.Warnings[0]
		}
	}
	return ""
}

// Shrink removes the messages from a status that is too large for the API server. The counts stay, and the results hold all
// messages.
func Shrink(f *oadpv1alpha1.RestoreFinalization) {
	if f == nil {
		return
	}
	f.VeleroErrors = nil
	for i := range f.Tasks {
		f.Tasks[i].Warnings, f.Tasks[i].Errors = nil, nil
	}
}

func timestamp(at time.Time) *metav1.Time {
	if at.IsZero() {
		return nil
	}
	return &metav1.Time{Time: at.UTC().Truncate(time.Second)} // as the API server stores it
}
