package drill_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/workflows"
	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/workflowtest/environment"
)

// scene is one drill whose activities change a view, and the queue before Velero.
type scene struct {
	*testsuite.TestWorkflowEnvironment
	view contract.DrillView
	// limited: the policy gives turns.
	limited  bool
	returned []contract.TurnReturn
}

func newScene() *scene {
	s := &scene{TestWorkflowEnvironment: environment.New(&testsuite.WorkflowTestSuite{})}
	s.SetTestTimeout(3 * time.Minute)
	workflows.Register(s, call.Options{})
	s.view = contract.DrillView{
		Found: true, Admitted: true, NamespaceExists: true, Namespace: contract.DrillNamespace{Name: "drill-x"}, Check: "objects",
		Velero: contract.VeleroDrillView{Name: "drill-x"},
	}
	s.on(contract.RefreshDrill, func(contract.DrillStep) {})
	s.on(contract.StartDrillRestore, func(in contract.DrillStep) {
		s.view.AwaitsTurn = s.limited && in.Turn.Number == 0
		s.view.Velero.Exists, s.view.Velero.Begun = !s.view.AwaitsTurn, !s.view.AwaitsTurn
		s.view.TurnUsed = in.Turn.Number > 0
	})
	s.on(contract.CheckDrill, func(contract.DrillStep) { s.view.Check = "" })
	s.on(contract.ConcludeDrill, func(contract.DrillStep) { s.view.Concluded = true })
	s.on(contract.ReleaseDrillVolumes, func(contract.DrillStep) {})
	s.on(contract.RemoveDrillRestore, func(contract.DrillStep) { s.view.Velero.Exists = false })
	s.on(contract.EndDrill, func(contract.DrillStep) { s.view.Ended = true })
	s.RegisterActivityWithOptions(func(context.Context, contract.DrillNamespace) (contract.DrillNamespaceView, error) {
		return contract.DrillNamespaceView{Exists: true, Prepared: true}, nil
	}, activity.RegisterOptions{Name: contract.PrepareDrillNamespace.Name})
	s.RegisterActivityWithOptions(func(context.Context, contract.DrillNamespace) (contract.DrillNamespaceView, error) {
		s.view.NamespaceExists = false
		return contract.DrillNamespaceView{}, nil
	}, activity.RegisterOptions{Name: contract.RemoveDrillNamespace.Name})
	s.RegisterActivityWithOptions(func(_ context.Context, back contract.TurnReturn) error {
		s.returned = append(s.returned, back)
		return nil
	}, activity.RegisterOptions{Name: contract.ReturnTurn.Name})
	return s
}

func (s *scene) on(step contract.Activity[contract.DrillStep, contract.DrillView], do func(contract.DrillStep)) {
	s.RegisterActivityWithOptions(func(_ context.Context, in contract.DrillStep) (contract.DrillView, error) {
		do(in)
		return s.view, nil
	}, activity.RegisterOptions{Name: step.Name})
}

// after changes the world and signals the workflow.
func (s *scene) after(delay time.Duration, changed func() contract.VeleroChanged) {
	s.RegisterDelayedCallback(func() { s.SignalWorkflow(contract.SignalChanged, changed()) }, delay)
}

func (s *scene) run(t *testing.T) {
	t.Helper()
	s.ExecuteWorkflow(contract.KindDrill.Workflow, contract.DrillInput{ObjectInput: contract.ObjectInput{
		Cluster: "west", Ref: contract.ObjectRef{Namespace: "team", Name: "weekly", UID: "u"},
	}})
	require.NoError(t, s.GetWorkflowError())
	assert.True(t, s.view.Ended)
}

func (s *scene) veleroFinishes() contract.VeleroChanged {
	s.view.Velero.Finished, s.view.Velero.Restored = true, true
	return contract.VeleroChanged{}
}

func TestADrillWithoutAQueueHasNoTurn(t *testing.T) {
	s := newScene()
	s.after(time.Second, s.veleroFinishes)
	s.run(t)
	assert.Empty(t, s.returned)
}

// The watcher's news end a turn with which a Velero Restore was made, when Velero has finished that.
func TestADrillWaitsForItsTurnAndUsesIt(t *testing.T) {
	s := newScene()
	s.limited = true
	s.after(40*time.Second, func() contract.VeleroChanged {
		assert.True(t, s.view.AwaitsTurn)
		return contract.VeleroChanged{Turn: contract.Turn{Number: 7, Given: s.Now().Unix()}}
	})
	s.after(50*time.Second, func() contract.VeleroChanged {
		assert.True(t, s.view.Velero.Exists)
		return s.veleroFinishes()
	})
	s.run(t)
	assert.Empty(t, s.returned)
}

func TestATurnThatCameTooLateIsGivenBackAndAnotherOneTaken(t *testing.T) {
	s := newScene()
	s.limited = true
	s.after(5*time.Second, func() contract.VeleroChanged {
		return contract.VeleroChanged{Turn: contract.Turn{Number: 7, Given: s.Now().Add(-contract.TurnUsable).Unix()}}
	})
	s.after(10*time.Second, func() contract.VeleroChanged {
		require.Len(t, s.returned, 1)
		assert.True(t, s.returned[0].Waits)
		return contract.VeleroChanged{Turn: contract.Turn{Number: 8, Given: s.Now().Unix()}}
	})
	s.after(12*time.Second, s.veleroFinishes)
	s.run(t)
	assert.Len(t, s.returned, 1)
	assert.True(t, s.returned[0].Drill)
}

// The policy gives no turns any more while the drill waits for one.
func TestAQueueThatIsGoneHoldsNobody(t *testing.T) {
	s := newScene()
	s.limited = true
	s.RegisterDelayedCallback(func() { s.limited = false }, 20*time.Second)
	s.after(time.Minute, func() contract.VeleroChanged {
		assert.True(t, s.view.Velero.Exists, "it has looked again by itself")
		return s.veleroFinishes()
	})
	s.run(t)
	assert.Empty(t, s.returned)
}

func TestADrillThatIsDeletedWhileItWaitsGivesItsTurnBack(t *testing.T) {
	s := newScene()
	s.limited = true
	s.after(5*time.Second, func() contract.VeleroChanged {
		s.view.Found, s.view.AwaitsTurn = false, false
		return contract.VeleroChanged{Turn: contract.Turn{Number: 7, Given: s.Now().Unix()}}
	})
	s.ExecuteWorkflow(contract.KindDrill.Workflow, contract.DrillInput{ObjectInput: contract.ObjectInput{
		Cluster: "west", Ref: contract.ObjectRef{Namespace: "team", Name: "weekly", UID: "u"},
	}})
	require.NoError(t, s.GetWorkflowError())
	require.Len(t, s.returned, 1)
	assert.False(t, s.view.NamespaceExists)
}

// A check that has no result when the drill's time is over is given up: nothing holds the namespace for ever.
func TestACheckThatNeverEndsIsGivenUp(t *testing.T) {
	s := newScene()
	s.view.Deadline = s.Now().Add(10 * time.Minute).Unix()
	s.RegisterActivityWithOptions(func(context.Context, contract.DrillStep) (contract.DrillView, error) {
		return contract.DrillView{}, temporal.NewNonRetryableApplicationError("the archive never ends", "Test", nil)
	}, activity.RegisterOptions{Name: contract.CheckDrill.Name, DisableAlreadyRegisteredCheck: true})
	var given string
	s.SetOnLocalActivityStartedListener(func(info *activity.Info, _ context.Context, args []any) {
		if in, ours := args[0].(contract.DrillStep); ours && info.ActivityType.Name == contract.ConcludeDrill.Name {
			given = in.GivenUp
		}
	})
	s.after(time.Second, s.veleroFinishes)
	s.run(t)
	assert.Equal(t, "check objects was given up: the archive never ends", given)
}

// What the API server refuses is the tenant's; that nobody starts the Job is not, and says nothing about the backup.
func TestOnlyARefusedJobFailsItsCheck(t *testing.T) {
	for title, test := range map[string]struct {
		answer contract.DrillNamespaceView
		err    error
		want   string
	}{
		"refused":   {answer: contract.DrillNamespaceView{Refused: "violates PodSecurity"}, want: "violates PodSecurity"},
		"started":   {},
		"by nobody": {err: temporal.NewNonRetryableApplicationError("no worker", "Test", nil)},
	} {
		t.Run(title, func(t *testing.T) {
			s := newScene()
			s.view.Check, s.view.Deadline = holdfastv1alpha1.CheckJob, s.Now().Add(time.Minute).Unix()
			s.RegisterActivityWithOptions(func(context.Context, contract.DrillNamespace) (contract.DrillNamespaceView, error) {
				return test.answer, test.err
			}, activity.RegisterOptions{Name: contract.StartDrillJob.Name})
			checked := []string{}
			s.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context, args converter.EncodedValues) {
				var in contract.DrillStep
				if info.ActivityType.Name == contract.CheckDrill.Name && args.Get(&in) == nil {
					checked = append(checked, in.Refused)
				}
			})
			s.after(time.Second, s.veleroFinishes)
			s.run(t)
			assert.Equal(t, []string{test.want}, checked)
		})
	}
}
