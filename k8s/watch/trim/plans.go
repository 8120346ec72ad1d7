package trim

import (
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
)

// backupPlan keeps what its Schedule is compared by, and what the metrics count.
func backupPlan(of *holdfastv1alpha1.BackupPlan) *holdfastv1alpha1.BackupPlan {
	kept := &holdfastv1alpha1.BackupPlan{TypeMeta: of.TypeMeta, ObjectMeta: trimmed(of.ObjectMeta)}
	kept.Spec.Schedule, kept.Spec.TimeZone, kept.Spec.Jitter = name(of.Spec.Schedule), name(of.Spec.TimeZone), name(of.Spec.Jitter)
	kept.Spec.Paused, kept.Spec.Objective = of.Spec.Paused, of.Spec.Objective
	status := &of.Status
	kept.Status = holdfastv1alpha1.BackupPlanStatus{
		ObservedGeneration: status.ObservedGeneration, Paused: holdfastv1alpha1.PausedBy(name(string(status.Paused))),
		NextRun: status.NextRun, HandledRunNow: text(status.HandledRunNow), Counts: status.Counts,
	}
	if good := status.LastGood; good != nil {
		kept.Status.LastGood = &holdfastv1alpha1.GoodRun{Name: name(good.Name), Time: good.Time, Expires: good.Expires}
	}
	if status.Retention != nil {
		kept.Status.Retention = &holdfastv1alpha1.Retention{PendingSince: status.Retention.PendingSince}
	}
	if status.Content != nil {
		kept.Status.Content = &holdfastv1alpha1.Content{Less: status.Content.Less}
	}
	for _, each := range last(status.Conditions) {
		each.Type, each.Reason, each.Message = name(each.Type), name(each.Reason), ""
		kept.Status.Conditions = append(kept.Status.Conditions, each)
	}
	return kept
}
