package plan_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"holdfast.dev/holdfast/workflows"
	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/workflowtest/environment"
)

// stale is more than a Schedule is ever late.
const stale = time.Hour

var ref = contract.ObjectRef{Namespace: "team", Name: "nightly", UID: "u"}

// scene is a plan whose views the test says.
type scene struct {
	*testsuite.TestWorkflowEnvironment
	steps []string
	ins   []contract.PlanStep
	view  func(name string, in contract.PlanStep) contract.PlanView
}

func newScene(view func(name string, in contract.PlanStep) contract.PlanView) *scene {
	s := &scene{TestWorkflowEnvironment: environment.New(&testsuite.WorkflowTestSuite{}), view: view}
	workflows.Register(s, call.Options{})
	for _, step := range []contract.Activity[contract.PlanStep, contract.PlanView]{
		contract.RefreshPlan, contract.RunPlan, contract.RecordPlanBackups, contract.DeletePlanBackup, contract.ExtendPlanBackup,
	} {
		s.RegisterActivityWithOptions(func(_ context.Context, in contract.PlanStep) (contract.PlanView, error) {
			s.steps, s.ins = append(s.steps, step.Name), append(s.ins, in)
			return s.view(step.Name, in), nil
		}, activity.RegisterOptions{Name: step.Name})
	}
	return s
}

func (s *scene) run(t *testing.T) {
	t.Helper()
	s.ExecuteWorkflow(contract.KindPlan.Workflow, contract.PlanInput{ObjectInput: contract.ObjectInput{Cluster: "west", Ref: ref}})
	require.True(t, s.IsWorkflowCompleted())
	require.NoError(t, s.GetWorkflowError())
}

func (s *scene) did(name string) (count int) {
	for _, step := range s.steps {
		if step == name {
			count++
		}
	}
	return count
}

func TestARunIsMadeRecordedAndNoLongerCarried(t *testing.T) {
	refreshed := 0
	s := newScene(func(name string, _ contract.PlanStep) contract.PlanView {
		v := contract.PlanView{Found: true, Ready: true, WakeIn: time.Minute}
		switch name {
		case contract.RefreshPlan.Name:
			if refreshed++; refreshed == 1 {
				v.Due = 1_800_000_000
			}
			v.Found = refreshed < 3
		case contract.RunPlan.Name:
			v.MadeNow = &contract.PlanBackup{Name: "nightly-1", UID: "one"}
		case contract.RecordPlanBackups.Name:
			v.Recorded = []string{"one"}
		}
		if !v.Found {
			return contract.PlanView{}
		}
		return v
	})
	s.run(t)
	assert.Equal(t, []string{"refresh-plan", "run-plan", "record-plan-backups", "refresh-plan", "refresh-plan"}, s.steps)
	assert.Zero(t, s.ins[1].Due, "the activity knows which is due")
	assert.Equal(t, []contract.PlanBackup{{Name: "nightly-1", UID: "one"}}, s.ins[2].Made)
	assert.Empty(t, s.ins[3].Made)
}

// The workflow forgets what it knows of its Schedule when that differs, and doubts it when the plan wakes by itself.
func TestWhenAScheduleIsReadAgain(t *testing.T) {
	known := &contract.PlanSchedule{Generation: 1, Last: 1_900_000_000}
	s := newScene(nil)
	s.view = func(string, contract.PlanStep) contract.PlanView {
		return contract.PlanView{Found: len(s.steps) < 5, Ready: true, WakeIn: time.Minute, Schedule: known}
	}
	for at, changed := range map[time.Duration]contract.PlanChanged{
		10 * time.Second: {Changed: contract.Changed{Reason: "a backup has ended"}},
		20 * time.Second: {Changed: contract.Changed{Reason: "its Schedule differs"}, Schedule: true},
		30 * time.Second: {Changed: contract.Changed{Reason: "a backup has ended"}},
	} {
		s.RegisterDelayedCallback(func() { s.SignalWorkflow(contract.SignalChanged, changed) }, at)
	}
	s.run(t)
	var with []string
	for _, in := range s.ins {
		switch known := in.Schedule; {
		case known == nil:
			with = append(with, "unknown")
		case known.Doubted:
			with = append(with, "doubted")
		default:
			with = append(with, "known")
		}
	}
	assert.Equal(t, []string{"unknown", "known", "unknown", "known", "doubted"}, with, "new, a signal, it differs, a signal, by itself")
}

// However many starts by hand come at once, as of a backfill, they are one run, whose time is in the history before it is made.
func TestStartsByHandAreOneRun(t *testing.T) {
	gone := false
	s := newScene(func(_ string, _ contract.PlanStep) contract.PlanView {
		if gone {
			return contract.PlanView{}
		}
		return contract.PlanView{Found: true, Ready: true, WakeIn: time.Hour}
	})
	for i := range 5 {
		s.RegisterDelayedCallback(func() {
			s.SignalWorkflow(contract.SignalChanged, contract.PlanChanged{RunNow: true})
		}, time.Minute+time.Duration(i)*time.Second)
	}
	s.RegisterDelayedCallback(func() { s.SignalWorkflow(contract.SignalChanged, contract.PlanChanged{RunNow: true}) }, 10*time.Minute)
	s.RegisterDelayedCallback(func() {
		gone = true
		s.SignalWorkflow(contract.SignalChanged, contract.Changed{})
	}, 20*time.Minute)
	s.run(t)
	assert.Equal(t, 2, s.did("run-plan"))
	for i, step := range s.steps {
		if step == "run-plan" {
			assert.NotZero(t, s.ins[i].Due)
		}
	}
}

// A run is named by its second, and a quick worker makes two that a tenant requests within one.
func TestRunsRequestedWithinASecondHaveTwoNames(t *testing.T) {
	made := 0
	s := newScene(func(name string, _ contract.PlanStep) contract.PlanView {
		if name == contract.RunPlan.Name {
			made++
		}
		return contract.PlanView{Found: made < 2, Ready: true, RunNow: true, WakeIn: time.Hour}
	})
	s.run(t)
	var due []int64
	for i, step := range s.steps {
		if step == contract.RunPlan.Name {
			due = append(due, s.ins[i].Due)
		}
	}
	require.Len(t, due, 2)
	assert.Equal(t, due[0]+1, due[1])
}

func TestAPlanThatIsNotReadyMakesNoRun(t *testing.T) {
	refreshed := 0
	s := newScene(func(string, contract.PlanStep) contract.PlanView {
		if refreshed++; refreshed > 3 {
			return contract.PlanView{}
		}
		return contract.PlanView{Found: true, Why: "schedule", RunNow: true, Due: 1, WakeIn: time.Minute}
	})
	s.RegisterDelayedCallback(func() { s.SignalWorkflow(contract.SignalChanged, contract.PlanChanged{RunNow: true}) }, time.Second)
	s.run(t)
	assert.Zero(t, s.did("run-plan"))
}

func TestWhatAScheduleStartsSaysWhetherItWasByHand(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	passed := time.Now().Add(-2 * stale).Truncate(time.Second)
	tests := map[string]struct {
		scheduled *time.Time
		want      bool
	}{
		"at a time of the schedule": {&at, false},
		"a backfill":                {new(at.Add(-time.Hour)), true},
		"a backfill of what it had": {&passed, true},
		"without Temporal's word":   {nil, true},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			env := environment.New(&testsuite.WorkflowTestSuite{})
			workflows.Register(env, call.Options{})
			var signalled []contract.PlanSignal
			env.RegisterActivityWithOptions(func(_ context.Context, in contract.PlanSignal) error {
				signalled = append(signalled, in)
				return nil
			}, activity.RegisterOptions{Name: contract.SignalPlan.Name})
			if test.scheduled != nil {
				key := temporal.NewSearchAttributeKeyTime("TemporalScheduledStartTime")
				require.NoError(t, env.SetTypedSearchAttributesOnStart(temporal.NewSearchAttributes(key.ValueSet(*test.scheduled))))
			}
			env.ExecuteWorkflow(contract.KindPlanStart.Workflow,
				contract.PlanStartInput{Cluster: "west", Ref: ref, Instants: []int64{passed.Unix(), at.Unix()}})
			require.NoError(t, env.GetWorkflowError())
			assert.Equal(t, []contract.PlanSignal{{Cluster: "west", Ref: ref, ByHand: test.want}}, signalled)
		})
	}
}

// What wakes a plan when its next run begins is that run: it is made on the reading that finds it due.
func TestADueRunIsMadeOnOneReading(t *testing.T) {
	s := newScene(nil)
	begins := s.Now().Add(30 * time.Minute)
	s.view = func(name string, _ contract.PlanStep) contract.PlanView {
		if name == contract.RunPlan.Name {
			return contract.PlanView{} // the plan is gone meanwhile
		}
		return contract.PlanView{Found: true, Ready: true, NextRun: begins.Unix(), WakeIn: begins.Sub(s.Now())}
	}
	s.RegisterDelayedCallback(func() { s.SignalWorkflow(contract.SignalChanged, contract.Changed{}) }, 10*time.Minute)
	s.run(t)
	require.Equal(t, []string{"refresh-plan", "refresh-plan", "run-plan"}, s.steps)
	assert.Zero(t, s.ins[2].Due)
}
