package velero

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/k8s/metrics"
)

// count adds the plans.
func (p *plans) count(_ context.Context, census *metrics.Census) (func(*holdfastv1alpha1.BackupPlan), error) {
	counted := &census.Plans
	counted.Plans = map[metrics.PlanState]int{}
	now := time.Now()
	return func(plan *holdfastv1alpha1.BackupPlan) {
		status := &plan.Status
		counted.Plans[planState(status)]++
		missed := meta.IsStatusConditionFalse(status.Conditions, holdfastv1alpha1.ConditionObjectiveMet)
		if missed {
			counted.ObjectivesMissed++
		}
		if status.NextRun != nil && now.Sub(status.NextRun.Time) > metrics.OverdueAfter {
			counted.Overdue++
		}
		if status.Content != nil && status.Content.Less > 0 {
			counted.LessContent++
		}
		series := metrics.PlanSeries{Namespace: plan.Namespace, Name: plan.Name, Missed: missed}
		if status.LastGood != nil {
			series.LastGood = status.LastGood.Time.Time
			counted.OldestGood = earlier(counted.OldestGood, &status.LastGood.Time)
		}
		if status.Retention != nil {
			counted.OldestPending = earlier(counted.OldestPending, status.Retention.PendingSince)
		}
		if p.tenantLabels {
			counted.Each = append(counted.Each, series)
		}
	}, nil
}

// earlier is the earlier of two times, of which each may be unknown.
func earlier(a time.Time, b *metav1.Time) time.Time {
	if b == nil || (!a.IsZero() && a.Before(b.Time)) {
		return a
	}
	return b.Time
}

func planState(status *holdfastv1alpha1.BackupPlanStatus) metrics.PlanState {
	switch ready := meta.FindStatusCondition(status.Conditions, holdfastv1alpha1.ConditionReady); {
	case ready == nil:
		return metrics.PlanNew
	case ready.Status != metav1.ConditionTrue:
		return metrics.PlanNotReady
	case status.Paused != "":
		return metrics.PlanPaused
	}
	return metrics.PlanReady
}
