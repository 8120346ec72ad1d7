package plan

import (
	"context"
	"errors"
	"time"

	temporal "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"k8s.io/apimachinery/pkg/api/meta"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/k8s"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

// unscheduledTimeout is for the status of a plan whose Schedule could not be made.
const unscheduledTimeout = 2 * time.Second

// Activities serves BackupPlans.
type Activities struct {
	activities.Cluster
	// Gatherer reads through Client.
	Gatherer *Gatherer
	// Schedules are those of Temporal.
	Schedules Schedules
	// Now is time.Now.
	Now func() time.Time
}

// Register registers the activities with a worker under their wire names. Retries cause no Event.
func (a *Activities) Register(registry worker.ActivityRegistry) {
	a.register(registry, contract.RefreshPlan, a.Refresh)
	a.register(registry, contract.RunPlan, a.Run)
	a.register(registry, contract.RecordPlanBackups, a.RecordBackups)
	a.register(registry, contract.DeletePlanBackup, a.DeleteBackup)
	a.register(registry, contract.ExtendPlanBackup, a.ExtendBackup)
	a.register(registry, contract.MakePlanDrill, a.MakeDrill)
	a.register(registry, contract.DeletePlanDrill, a.DeleteDrill)
	activities.RegisterEffect(registry, contract.SignalPlan, a.Signal)
}

// register registers a step. It keeps the plan's Schedule first; a plan that is gone has none.
func (a *Activities) register(
	registry worker.ActivityRegistry, as contract.Activity[contract.PlanStep, contract.PlanView],
	act func(context.Context, *subject, contract.PlanStep) error,
) {
	activities.RegisterGuarded(registry, a.Paused, as, func(ctx context.Context, step contract.PlanStep) (contract.PlanView, error) {
		plan := activities.Object[subject, contract.PlanView]{
			Resource: holdfastv1alpha1.ResourceBackupPlans,
			Gather:   func(ctx context.Context, _ contract.ObjectRef) (*subject, error) { return a.gather(ctx, step) },
			Gone:     func(s *subject) bool { return s.Plan == nil },
			View:     (*subject).view,
		}
		view, err := plan.Update(ctx, step.Ref, func(s *subject) error { return act(ctx, s, step) })
		if err == nil && !view.Found {
			err = a.Schedules.Drop(ctx, step.Cluster, step.Ref)
		}
		return view, err
	})
}

// subject is a plan as one activity sees it.
type subject struct {
	*Objects
	step  contract.PlanStep
	judge Judgement
	now   time.Time
	// schedule is what is known of the Schedule.
	schedule *contract.PlanSchedule
	// made and recorded are for the view.
	made     *contract.PlanBackup
	recorded []string
}

func (a *Activities) gather(ctx context.Context, step contract.PlanStep) (*subject, error) {
	o, err := a.Gatherer.Gather(ctx, step)
	if err == nil && o.Plan != nil && k8s.JustRestored(o.Plan, o.Plan.Status.UID) {
		o, err = a.beginAnew(ctx, step, o.Plan)
	}
	s := &subject{Objects: o, step: step, now: a.Now()}
	if err != nil || o.Plan == nil {
		return s, err
	}
	if err := a.adopt(ctx, s); err != nil {
		return s, err
	}
	s.judge = Judge(o, nil, s.now)
	if err := a.keep(ctx, s); err != nil {
		return s, errors.Join(err, a.showUnscheduled(ctx, s))
	}
	o.Paused = pausedBy(o.Plan.Spec.Paused, s.schedule.PausedByOperator)
	used, err := a.used(ctx, o, s.judge)
	s.judge = Judge(o, used, s.now)
	return s, err
}

// beginAnew drops what a restore has brought of the plan in the backup: how far it was, and its request for a run.
func (a *Activities) beginAnew(ctx context.Context, step contract.PlanStep, plan *holdfastv1alpha1.BackupPlan) (*Objects, error) {
	_, err := a.PatchStatus(ctx, plan, func() { plan.Status = begunAnew(plan) })
	if err != nil && !errors.Is(err, activities.ErrGone) {
		return nil, err
	}
	return a.Gatherer.Gather(ctx, step)
}

// keep has the Schedule be as wanted, unless the workflow knows that it is.
func (a *Activities) keep(ctx context.Context, s *subject) error {
	wanted := wanted(s.Objects, s.judge, s.now)
	if known := s.step.Schedule; wanted.known(known, s.Plan.Generation) {
		same, err := a.undoubted(ctx, s, *known)
		if err != nil || same {
			s.schedule = &contract.PlanSchedule{
				Generation: known.Generation, Refused: known.Refused, Last: known.Last, PausedByOperator: known.PausedByOperator,
			}
			return err
		}
	}
	kept, err := a.Schedules.Keep(ctx, s.step.Cluster, s.step.Ref, wanted)
	s.schedule = &contract.PlanSchedule{
		Generation: s.Plan.Generation, Refused: wanted.Refused, Last: kept.Last.Unix(), PausedByOperator: kept.PausedByOperator,
	}
	return err
}

// showUnscheduled writes that the plan has no Schedule yet, unless it had one: the tenant is to see at least that while the cause
// lasts.
func (a *Activities) showUnscheduled(ctx context.Context, s *subject) error {
	if meta.FindStatusCondition(s.Plan.Status.Conditions, holdfastv1alpha1.ConditionReady) != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unscheduledTimeout) // Temporal may have used up the time
	defer cancel()
	_, err := a.PatchStatus(ctx, s.Plan, func() { applyUnscheduled(s.Plan) })
	return err
}

// undoubted reports whether a Schedule is still as the workflow knows it. Where Temporal is late with many, their plans wake by
// themselves, and reading each would make that worse: it is found in a list.
func (a *Activities) undoubted(ctx context.Context, s *subject, known contract.PlanSchedule) (bool, error) {
	if !known.Doubted {
		return true, nil
	}
	listed, found, err := a.Schedules.List(ctx, s.step.Cluster, s.step.Ref)
	operator := pausedByOperator(&temporal.Schedule{State: &temporal.ScheduleState{Paused: listed.Paused, Note: listed.Note}})
	return found && operator == known.PausedByOperator, err
}

func pausedBy(spec, operator bool) holdfastv1alpha1.PausedBy {
	switch {
	case spec && operator:
		return holdfastv1alpha1.PausedByBoth
	case spec:
		return holdfastv1alpha1.PausedBySpec
	case operator:
		return holdfastv1alpha1.PausedByOperator
	}
	return ""
}

// Refresh reads the present state and shows it.
func (a *Activities) Refresh(ctx context.Context, s *subject, _ contract.PlanStep) error {
	return a.show(ctx, s)
}

// show writes the status, and Events about what is new in it.
func (a *Activities) show(ctx context.Context, s *subject) error {
	before := s.Plan.Status.DeepCopy()
	changed, err := a.PatchStatus(ctx, s.Plan, func() { apply(s.Objects, s.judge, s.now) })
	if changed {
		a.recordChanges(s.Plan, before)
	}
	return err
}

// Run makes the NonAdminBackup of the run that is due, or finds the one that an earlier attempt has made. A run that the API
// server refuses is missed. If none is due, it is Refresh.
func (a *Activities) Run(ctx context.Context, s *subject, step contract.PlanStep) error {
	at, jitter := s.judge.Passed.Make, s.judge.Runs.Jitter
	if step.Due != 0 {
		at, jitter = time.Unix(step.Due, 0), 0
	}
	if s.judge.Refused != "" || at.IsZero() { // the spec was changed, or an earlier attempt has shown the run
		return a.show(ctx, s)
	}
	nab, err := a.make(ctx, s, at)
	refusal := refused(err, step.Due != 0, s.now.Sub(at.Add(jitter)))
	if err != nil && refusal == "" {
		return err
	}
	before := s.Plan.Status.DeepCopy()
	changed, err := a.PatchStatus(ctx, s.Plan, func() { s.applyRun(nab, at) })
	if changed {
		a.recordChanges(s.Plan, before)
		a.recordRun(s, nab, refusal)
	}
	s.judge = Judge(s.Objects, nil, s.now)
	return err
}

// madeBefore is the newest run of the schedule if no record says so: it was made, but the worker was killed before the workflow
// knew.
func (s *subject) madeBefore() *contract.PlanBackup {
	handled := s.Plan.Status.HandledDue
	if handled == nil || s.judge.Refused != "" {
		return nil
	}
	for _, b := range s.Backups {
		if !b.Recorded && !b.gone() && !b.deleting() && b.Object.Name == contract.PlanRunName(s.Plan.Name, handled.Time) &&
			sameRun(b.Object, build(s, handled.Time)) {
			return &contract.PlanBackup{Name: b.Object.Name, UID: string(b.Object.UID)}
		}
	}
	return nil
}

// applyRun records what became of a run; nab is nil if it was refused.
func (s *subject) applyRun(nab *oadpv1alpha1.NonAdminBackup, at time.Time) {
	apply(s.Objects, s.judge, s.now)
	status := &s.Plan.Status
	if s.step.Due != 0 {
		status.HandledRunNow = holdfastv1alpha1.RequestedRun(s.Plan.Annotations)
	} else {
		applyPassed(status, s.judge.Passed, s.Plan)
	}
	if nab == nil {
		countMissed(status, at)
		return
	}
	s.made = &contract.PlanBackup{Name: nab.Name, UID: string(nab.UID)}
	applyRun(s.Plan, nab.Name, at)
}

// used are the backups that a restore or a download reads, by name; it lists them only if something is to be deleted.
func (a *Activities) used(ctx context.Context, o *Objects, j Judgement) (map[string]string, error) {
	if len(j.Retention.Due) == 0 {
		return nil, nil
	}
	return readers(ctx, a.Client, o.Plan.Namespace)
}

// Signal signals the workflow of a plan, and starts it if it does not run. If the plan is gone, that removes its Schedule.
func (a *Activities) Signal(ctx context.Context, in contract.PlanSignal) error {
	return a.Schedules.Signal(ctx, in)
}
