package watch

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.uber.org/zap"

	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/workflows/contract"
)

const (
	// schedulesInterval is how soon a change of the policy's periods takes effect, and a failure is tried again.
	schedulesInterval = 2 * time.Second
	// schedulesAgain is how soon a Schedule that somebody has changed or deleted, or Temporal has lost, is as it should be.
	schedulesAgain = time.Minute
	// A start that was missed by more than this is not made up for: the next one is near, or Temporal's return starts one.
	catchUpMost = 10 * time.Minute
)

// Schedules keeps the Schedules of periodic work.
type Schedules interface {
	// Keep has the Schedule start its workflow every period, or removes it if that is zero. Two may do so at a time.
	Keep(ctx context.Context, kind contract.ScheduleKind, period time.Duration) error
	// Trigger has the Schedule start its workflow now, unless it runs.
	Trigger(ctx context.Context, kind contract.ScheduleKind) error
}

// TemporalSchedules implements Schedules with a Temporal client.
type TemporalSchedules struct {
	Client    client.Client
	ClusterID string
}

var _ Schedules = (*TemporalSchedules)(nil)

// scheduled says which workflow a Schedule starts.
var scheduled = map[contract.ScheduleKind]struct {
	workflow, summary string
	input             func(cluster string) any
}{
	contract.ScheduleCollection: {
		workflow: contract.WorkflowCollection, summary: "Garbage collection",
		input: func(cluster string) any { return contract.CollectionInput{Cluster: cluster} },
	},
	contract.ScheduleSynchronization: {
		workflow: contract.WorkflowSynchronization, summary: "Backup synchronization",
		input: func(cluster string) any { return contract.SynchronizationInput{Cluster: cluster} },
	},
}

// Keep implements Schedules.
func (s *TemporalSchedules) Keep(ctx context.Context, kind contract.ScheduleKind, period time.Duration) error {
	handle := s.Client.ScheduleClient().GetHandle(ctx, contract.ScheduleID(s.ClusterID, kind))
	var missing *serviceerror.NotFound
	if period <= 0 {
		if err := handle.Delete(ctx); err != nil && !errors.As(err, &missing) {
			return fmt.Errorf("delete Schedule %s: %w", handle.GetID(), err)
		}
		return nil
	}
	description, err := handle.Describe(ctx)
	switch {
	case errors.As(err, &missing):
		return s.create(ctx, kind, period)
	case err != nil:
		return fmt.Errorf("describe Schedule %s: %w", handle.GetID(), err)
	case s.asWished(&description.Schedule, kind, period):
		return nil
	}
	err = handle.Update(ctx, client.ScheduleUpdateOptions{
		DoUpdate: func(input client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
			schedule := input.Description.Schedule // whether it is paused is the operators' matter
			schedule.Spec, schedule.Action = spec(period), s.action(kind)
			schedule.Policy = &client.SchedulePolicies{Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_SKIP, CatchupWindow: catchUp(period)}
			return &client.ScheduleUpdate{Schedule: &schedule}, nil
		},
	})
	if err != nil {
		return fmt.Errorf("update Schedule %s: %w", handle.GetID(), err)
	}
	return nil
}

func (s *TemporalSchedules) create(ctx context.Context, kind contract.ScheduleKind, period time.Duration) error {
	wished := spec(period)
	_, err := s.Client.ScheduleClient().Create(ctx, client.ScheduleOptions{
		ID: contract.ScheduleID(s.ClusterID, kind), Spec: *wished, Action: s.action(kind),
		Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_SKIP, CatchupWindow: catchUp(period),
		TriggerImmediately:    true,
		TypedSearchAttributes: s.attributes(kind),
	})
	if err != nil && !errors.Is(err, temporal.ErrScheduleAlreadyRunning) { // another watcher was faster
		return fmt.Errorf("create Schedule %s: %w", contract.ScheduleID(s.ClusterID, kind), err)
	}
	return nil
}

// asWished compares what may have been changed by hand, by the policy or by another release.
func (s *TemporalSchedules) asWished(schedule *client.Schedule, kind contract.ScheduleKind, period time.Duration) bool {
	action, ok := schedule.Action.(*client.ScheduleWorkflowAction)
	return ok && action.Workflow == scheduled[kind].workflow && action.TaskQueue == contract.TaskQueue(s.ClusterID) &&
		schedule.Spec != nil && len(schedule.Spec.Intervals) == 1 && schedule.Spec.Intervals[0].Every == period &&
		schedule.Policy != nil && schedule.Policy.Overlap == enumspb.SCHEDULE_OVERLAP_POLICY_SKIP &&
		schedule.Policy.CatchupWindow == catchUp(period)
}

// Trigger implements Schedules.
func (s *TemporalSchedules) Trigger(ctx context.Context, kind contract.ScheduleKind) error {
	handle := s.Client.ScheduleClient().GetHandle(ctx, contract.ScheduleID(s.ClusterID, kind))
	err := handle.Trigger(ctx, client.ScheduleTriggerOptions{Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_SKIP})
	if err != nil {
		return fmt.Errorf("trigger Schedule %s: %w", handle.GetID(), err)
	}
	return nil
}

func (s *TemporalSchedules) action(kind contract.ScheduleKind) *client.ScheduleWorkflowAction {
	served := scheduled[kind]
	return &client.ScheduleWorkflowAction{
		ID: contract.ScheduleID(s.ClusterID, kind), Workflow: served.workflow, Args: []any{served.input(s.ClusterID)},
		TaskQueue: contract.TaskQueue(s.ClusterID), WorkflowTaskTimeout: workflowTaskTimeout,
		TypedSearchAttributes: s.attributes(kind), StaticSummary: served.summary,
	}
}

func (s *TemporalSchedules) attributes(kind contract.ScheduleKind) temporal.SearchAttributes {
	return temporal.NewSearchAttributes(
		contract.AttributeCluster.ValueSet(s.ClusterID), contract.AttributeKind.ValueSet(scheduled[kind].workflow))
}

func spec(period time.Duration) *client.ScheduleSpec {
	return &client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: period}}}
}

// catchUp is how late a start may be: less than the period. Temporal takes no less than ten seconds.
func catchUp(period time.Duration) time.Duration {
	return max(10*time.Second, min(period/2, catchUpMost).Truncate(time.Second))
}

// keepSchedules keeps the Schedules as the policy wants them, from the first policy read, and starts each once: what the
// watcher finds may have been rebuilt.
func (w *Watcher) keepSchedules(ctx context.Context) {
	keeper := scheduleKeeper{Watcher: w, kept: map[contract.ScheduleKind]kept{}}
	ticker := time.NewTicker(schedulesInterval)
	defer ticker.Stop()
	for {
		if current := w.policy.current.Load(); current != nil {
			keeper.keep(ctx, *current)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// scheduleKeeper remembers what it has made sure of.
type scheduleKeeper struct {
	*Watcher
	kept map[contract.ScheduleKind]kept
}

type kept struct {
	period    time.Duration
	at        time.Time
	triggered bool
}

func (k *scheduleKeeper) keep(ctx context.Context, rules policy.Policy) {
	for kind, period := range map[contract.ScheduleKind]time.Duration{
		contract.ScheduleCollection: rules.GarbageCollection(), contract.ScheduleSynchronization: rules.BackupSync(),
	} {
		if period > 0 {
			period = max(period.Truncate(time.Second), time.Second) // as exact as Temporal keeps it
		}
		last, known := k.kept[kind]
		if known && last.period == period && time.Since(last.at) < schedulesAgain {
			continue
		}
		if err := k.keepOne(ctx, kind, period, &last); err != nil {
			k.Log.Warn("cannot keep a Schedule, will retry", zap.String("schedule", string(kind)), zap.Error(err))
			continue
		}
		last.period, last.at = period, time.Now()
		k.kept[kind] = last
	}
}

func (k *scheduleKeeper) keepOne(ctx context.Context, kind contract.ScheduleKind, period time.Duration, last *kept) error {
	if err := k.Schedules.Keep(ctx, kind, period); err != nil {
		return err
	}
	if period <= 0 || last.triggered {
		return nil
	}
	if err := k.Schedules.Trigger(ctx, kind); err != nil {
		return err
	}
	last.triggered = true
	return nil
}
