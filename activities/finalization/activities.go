package finalization

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"

	"holdfast.dev/holdfast/activities"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/lifecycle"
	"holdfast.dev/holdfast/k8s/metrics"
	"holdfast.dev/holdfast/k8s/objectstore"
	"holdfast.dev/holdfast/k8s/velero"
	"holdfast.dev/holdfast/workflows/contract"
)

// Activities are the activities of a finalization.
type Activities struct {
	activities.Cluster
	// Finder reads through Client.
	Finder *Finder
	// Now is the time; time.Now if nil.
	Now func() time.Time
}

// Register registers the activities with a worker under their wire names. Retries cause no Event: a task that waits is always
// retried.
func (f *Activities) Register(registry worker.ActivityRegistry) {
	for _, task := range Tasks() {
		metrics.FinalizationTaskKnown(task.Name())
	}
	activities.RegisterGuarded(registry, f.Paused, contract.PlanFinalization, f.Plan)
	activities.RegisterGuarded(registry, f.Paused, contract.RunFinalizationTask, f.RunTask)
	activities.RegisterGuarded(registry, f.Paused, contract.PublishFinalization, f.Publish)
	activities.RegisterGuarded(registry, f.Paused, contract.RecordFinalization, f.Record)
}

func (f *Activities) now() time.Time {
	if f.Now != nil {
		return f.Now()
	}
	return time.Now()
}

// Plan decides whether the finalization is due and which tasks there are.
func (f *Activities) Plan(ctx context.Context, step contract.ObjectStep) (contract.FinalizationPlan, error) {
	subject, err := f.Finder.Find(ctx, step.Ref)
	if err != nil {
		return contract.FinalizationPlan{}, err
	}
	if subject.NAR != nil {
		if phase := lifecycle.FinalPhase(subject.NAR); phase != "" {
			present := ptr.Deref(subject.NAR.Status.Finalization, oadpv1alpha1.RestoreFinalization{})
			return contract.FinalizationPlan{Ended: contract.FinalizationResult{
				Phase: string(phase), Warnings: present.Warnings, Errors: present.Errors,
			}}, nil
		}
	}
	if !subject.Due() {
		return contract.FinalizationPlan{}, nil
	}
	plan := contract.FinalizationPlan{
		Due: true, VeleroFailed: !velero.Good(subject.Restore.Status.Phase),
	}
	for _, task := range Tasks() {
		plan.Tasks = append(plan.Tasks, contract.PlannedTask{
			Name: task.Name(), Summary: task.Summary(), Timeout: task.Timeout(),
		})
	}
	return plan, nil
}

// RunTask runs one task. A task that waits ends with ErrorNotYet and is run again, so that it holds no slot of a worker.
func (f *Activities) RunTask(ctx context.Context, step contract.FinalizationTaskStep) (contract.FinalizationOutcome, error) {
	var outcome contract.FinalizationOutcome
	task, err := TaskNamed(step.Task)
	if err != nil {
		return outcome, err // another worker knows it: releases differ for a while
	}
	gone, err := f.with(ctx, step.Ref, step.Deadline, func(c *Context) error {
		found, err := task.Run(ctx, c)
		outcome.Warnings, outcome.Errors = found.Warnings, found.Errors
		outcome.LeftOut, outcome.Refused, outcome.Shadowed = found.LeftOut, found.Refused, found.Shadowed
		return err
	})
	if errors.Is(err, errRestoreGone) {
		return contract.FinalizationOutcome{Errors: contract.FinalizationLines{Velero: []string{errRestoreGone.Error()}}}, nil
	}
	outcome.Gone = gone
	return outcome, err
}

// Publish adds the findings of the tasks to the results in the object store.
func (f *Activities) Publish(
	ctx context.Context, in contract.FinalizationPublication,
) (contract.FinalizationPublished, error) {
	var published contract.FinalizationPublished
	_, err := f.with(ctx, in.Ref, in.Deadline, func(c *Context) error {
		var err error
		published, err = Publish(ctx, c, in.Tasks)
		return err
	})
	if errors.Is(err, errRestoreGone) {
		return contract.FinalizationPublished{Problem: errRestoreGone.Error()}, nil
	}
	return published, err
}

var errRestoreGone = errors.New("the Velero Restore is gone")

// with calls do with the Context of tasks. It reports that the tenant's object is deleted or being deleted; do is not called
// then.
func (f *Activities) with(
	ctx context.Context, ref contract.ObjectRef, deadline time.Time, do func(*Context) error,
) (gone bool, err error) {
	defer activities.Beating(ctx)()
	subject, err := f.Finder.Find(ctx, ref)
	switch {
	case err != nil:
		return false, err
	case !subject.Stays():
		return true, nil
	case subject.Restore == nil:
		return false, errRestoreGone
	}
	c := &Context{
		Client: activities.Limited(f.Client), NAR: subject.NAR, Restore: subject.Restore,
		Expired:  !f.now().Before(deadline),
		Progress: func() { activity.RecordHeartbeat(ctx) },
		OpenStore: func(ctx context.Context) (*objectstore.Store, error) {
			made, err := f.Finder.Stores.Backup(ctx, subject.Restore)
			if err != nil {
				return nil, err
			}
			return f.Finder.Stores.Open(ctx, made, subject.NAR.Namespace)
		},
	}
	return false, errors.Join(do(c), c.Close())
}

// Record writes the status. It is no error if the object is gone.
func (f *Activities) Record(ctx context.Context, record contract.FinalizationRecord) (contract.FinalizationResult, error) {
	err := retry.OnError(activities.ConflictBackoff(), activities.Conflicts(oadpv1alpha1.ResourceNonAdminRestores), func() error {
		subject, err := f.Finder.Find(ctx, record.Ref)
		if err != nil || !subject.Stays() {
			return err
		}
		nar := subject.NAR
		before := nar.DeepCopy()
		var applied *oadpv1alpha1.RestoreFinalization // the answer may leave it out
		changed, err := f.PatchStatus(ctx, nar, func() {
			Apply(nar, record)
			applied = nar.Status.Finalization.DeepCopy()
		})
		if activities.TooLarge(err) {
			before.DeepCopyInto(nar)
			changed, err = f.PatchStatus(ctx, nar, func() {
				Apply(nar, record)
				Shrink(nar.Status.Finalization)
				applied = nar.Status.Finalization.DeepCopy()
			})
		}
		if changed {
			f.record(before, nar, applied)
		}
		if errors.Is(err, activities.ErrGone) {
			return nil
		}
		return err
	})
	return contract.FinalizationResult{Phase: record.Phase, Warnings: record.Warnings, Errors: record.Errors}, err
}
