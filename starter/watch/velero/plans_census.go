package velero

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/activities/plan"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/k8s/metrics"
)

// count adds the plans.
func (p *plans) count(_ context.Context, census *metrics.Census) (func(*holdfastv1alpha1.BackupPlan), error) {
	counted := &census.Plans
	counted.Plans = map[metrics.PlanState]int{}
	now := time.Now()
	return func(object *holdfastv1alpha1.BackupPlan) {
		status := &object.Status
		counted.Plans[planState(status)]++
		missed, verification := plan.Misses(status)
		if missed {
			counted.ObjectivesMissed++
		}
		if verification {
			counted.VerificationsMissed++
		}
		if status.NextRun != nil && now.Sub(status.NextRun.Time) > metrics.OverdueAfter {
			counted.Overdue++
		}
		if status.Content != nil && status.Content.Less > 0 {
			counted.LessContent++
		}
		series := metrics.PlanSeries{Namespace: object.Namespace, Name: object.Name, Missed: missed || verification}
		if status.LastGood != nil {
			series.LastGood = status.LastGood.Time.Time
			counted.OldestGood = earlier(counted.OldestGood, &status.LastGood.Time)
		}
		if status.LastVerified != nil {
			series.LastVerified = status.LastVerified.Time.Time
			counted.OldestVerified = earlier(counted.OldestVerified, &status.LastVerified.Time)
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
