package schedules

import (
	"context"
	"time"

	"go.uber.org/zap"

	"holdfast.dev/holdfast/activities/plan"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/workflows/connect"
	"holdfast.dev/holdfast/workflows/contract"
)

// ReviewInterval is how soon a change of a plan's Schedule by hand is found: there are no events of Schedules. Where Temporal
// lists slowly the pauses are longer, so that passes take one part in reviewShare of the time. With 10,000 plans a pass takes
// 47 s of its development server, and runs that were due waited for that.
const (
	ReviewInterval = time.Minute
	reviewShare    = 10
)

// PlanSchedules lists the Schedules of plans by ID.
type PlanSchedules interface {
	ListSchedules(ctx context.Context, cluster string) (map[string]plan.Listed, error)
}

// Review compares the Schedules of all plans with the plans, and signals the workflow of each that differs. It writes nothing.
type Review struct {
	ClusterID string
	Schedules PlanSchedules
	// Plans calls do for each BackupPlan in the cache.
	Plans     func(ctx context.Context, do func(*holdfastv1alpha1.BackupPlan))
	Workflows connect.Workflows
	Paused    func() error
	Log       *zap.Logger

	// differed are the plans that differed at the last pass, by the ID of their Schedule.
	differed map[string]bool
}

// Run reviews all plans every minute, or at most a tenth of the time.
func (r *Review) Run(ctx context.Context) {
	for pause := ReviewInterval; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = ReviewInterval
		if err := r.Paused(); err != nil {
			continue
		}
		begin := time.Now()
		if err := r.pass(ctx, begin); err != nil && ctx.Err() == nil {
			r.Log.Warn("cannot review the Schedules of plans, will retry", zap.Error(err))
		}
		took := time.Since(begin)
		pause = max(ReviewInterval-took, (reviewShare-1)*took)
	}
}

// pass signals what differs. A Schedule that is missing is signalled for at the second pass: a new one is listed late.
func (r *Review) pass(ctx context.Context, now time.Time) error {
	var plans []*holdfastv1alpha1.BackupPlan
	r.Plans(ctx, func(p *holdfastv1alpha1.BackupPlan) { plans = append(plans, p) })
	if len(plans) == 0 {
		r.differed = nil
		return nil
	}
	listed, err := r.Schedules.ListSchedules(ctx, r.ClusterID)
	if err != nil {
		return err
	}
	differed := map[string]bool{}
	for _, p := range plans {
		ref := contract.ObjectRef{Namespace: p.Namespace, Name: p.Name, UID: string(p.UID)}
		id := contract.WorkflowID(r.ClusterID, contract.KindPlan, ref)
		schedule, found := listed[id]
		if !plan.Scheduled(p) || (found && schedule.Agrees(p, now)) {
			continue
		}
		differed[id] = true
		if !found && !r.differed[id] {
			continue
		}
		changed := contract.PlanChanged{Changed: contract.Changed{Reason: "its Schedule differs"}, Schedule: true}
		err := r.Workflows.SignalWithStart(ctx, contract.KindPlan, ref, changed)
		if err != nil {
			return err
		}
	}
	r.differed = differed
	return nil
}
