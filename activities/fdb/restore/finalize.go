package restore

import (
	"context"
	"time"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/activities/fdb/restore/tasks"
	"holdfast.dev/holdfast/activities/fdb/tools"
	"holdfast.dev/holdfast/k8s/fdb/restoretool"
	"holdfast.dev/holdfast/workflows/contract"
)

// Finalize runs one task of what follows a restore. A task that waits ends with ErrorNotYet and is run again, so that it holds no
// slot of a worker.
func (t *Tools) Finalize(
	ctx context.Context, step contract.FDBRestoreTaskStep,
) (outcome contract.FinalizationOutcome, err error) {
	defer activities.Beating(ctx)()
	task, err := tasks.Named(step.Task)
	if err != nil {
		return outcome, err // a worker of another release may know it
	}
	reach, trouble, err := t.reach(ctx, step.Ref)
	defer reach.Done(&err)
	switch {
	case err != nil:
		return outcome, err
	case reach == nil || !reach.Object.DeletionTimestamp.IsZero():
		return contract.FinalizationOutcome{Gone: true}, nil
	}
	plan := reach.View().Plan
	if plan == nil {
		outcome.Errors.Cluster = []string{"status.plan is gone: it is not known what was to be restored"}
		return outcome, nil
	}
	limited, cancel := context.WithTimeout(ctx, task.Timeout())
	defer cancel()
	found, err := task.Run(limited, reach.taskContext(*plan, trouble, !time.Now().Before(step.Deadline)))
	outcome.Warnings, outcome.Errors = found.Warnings, found.Errors
	return outcome, err
}

// taskContext returns what tasks need; trouble says why the destination cannot be queried.
func (r *Reach) taskContext(
	plan contract.FDBRestorePlan, trouble *contract.FDBFailure, expired bool,
) *tasks.Context {
	if owner := r.Cluster.Owner(); trouble == nil && owner != plan.Destination {
		trouble = tools.OtherFailure("the FoundationDBCluster is now another database, %s and not %s", owner, plan.Destination)
	}
	c := &tasks.Context{Plan: plan, Expired: expired, Status: r.Status, Database: r.Database}
	if trouble != nil {
		c.Status = func(context.Context, string) (*contract.FDBRestoreProgress, *contract.FDBFailure) {
			return nil, trouble
		}
		c.Database = func(context.Context) (restoretool.DatabaseStatus, *contract.FDBFailure) {
			return restoretool.DatabaseStatus{}, trouble
		}
	}
	return c
}
