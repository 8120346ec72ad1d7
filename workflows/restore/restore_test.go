package restore_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.temporal.io/sdk/workflow"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/location/locationtest"
	"holdfast.dev/holdfast/workflows/workflowtest"
)

const again = "again"

// restoring returns a scenario with a complete backup and a restore of it.
func restoring(t *testing.T) *workflowtest.Scenario {
	t.Helper()
	s := workflowtest.NewScenario(t, append(fake.Taken(workflowtest.Backup, fake.AdminLocation, ""), fake.NAR(again, workflowtest.Backup))...)
	s.World.Restores.Register(s)
	return s
}

func runRestore(t *testing.T, s *workflowtest.Scenario) {
	t.Helper()
	s.ExecuteWorkflow(contract.KindRestore.Workflow, contract.ObjectInput{Cluster: fake.Cluster, Ref: fake.Ref(again)})
	require.True(t, s.IsWorkflowCompleted())
	require.NoError(t, s.GetWorkflowError())
}

func veleroRestore(phase velerov1.RestorePhase) func(*fake.World) {
	return func(w *fake.World) { w.SetRestore(fake.VeleroName(again), phase) }
}

func removeRestore(w *fake.World) { w.Remove(fake.NAR(again, workflowtest.Backup)) }

func creations(s *workflowtest.Scenario, of string) int {
	creations := 0
	for _, write := range s.World.Writes() {
		if write == "create "+of {
			creations++
		}
	}
	return creations
}

func TestRestoreIsCreatedMirroredAndSettles(t *testing.T) {
	for _, final := range []velerov1.RestorePhase{velerov1.RestorePhaseFailed, velerov1.RestorePhaseFailedValidation} {
		t.Run(string(final), func(t *testing.T) {
			s := restoring(t)
			phases := []velerov1.RestorePhase{
				"New", "SomethingNewer", "InProgress", "WaitingForPluginOperations", "WaitingForPluginOperationsPartiallyFailed",
				"Finalizing", "FinalizingPartiallyFailed", final,
			}
			for i, phase := range phases {
				s.After(time.Duration(i+1)*time.Second, veleroRestore(phase))
			}
			runRestore(t, s)
			nar := s.World.ReadRestore(again)
			assert.Equal(t, oadpv1alpha1.NonAdminPhaseCreated, nar.Status.Phase)
			assert.Equal(t, final, nar.Status.VeleroRestore.Status.Phase)
			assert.Zero(t, nar.Status.QueueInfo.EstimatedQueuePosition)
			made := s.World.VeleroRestore(fake.VeleroName(again))
			assert.Equal(t, []string{fake.Namespace}, made.Spec.IncludedNamespaces)
			assert.Equal(t, fake.VeleroName(workflowtest.Backup), made.Spec.BackupName)
			assert.Equal(t, 1, creations(s, "Restore"))
			assert.Zero(t, creations(s, "ConfigMap"), "an administrator's location needs none")
		})
	}
}

func TestARestoreLooksForItselfWhenNoSignalComes(t *testing.T) {
	s := restoring(t)
	var details string
	s.RegisterDelayedCallback(func() { details = workflowtest.CurrentDetails(t, s) }, time.Minute)
	s.RegisterDelayedCallback(func() { veleroRestore(velerov1.RestorePhaseFailed)(s.World) }, 2*time.Minute)
	runRestore(t, s)
	assert.Contains(t, details, "waits for Velero to start")
	assert.Equal(t, velerov1.RestorePhaseFailed, s.World.ReadRestore(again).Status.VeleroRestore.Status.Phase)
}

func TestEveryDeletionOfARestoreEnds(t *testing.T) {
	files := func(w *fake.World) { w.RemoveRestoreFiles(fake.VeleroName(again)) }
	tests := map[string]struct {
		steps []func(*fake.World)
		// wantLeft: the Velero Restore is Velero's to remove, nobody waits for it.
		wantLeft bool
	}{
		"of one that has failed":    {steps: []func(*fake.World){veleroRestore("Failed"), removeRestore, files}},
		"while Velero works":        {steps: []func(*fake.World){veleroRestore("InProgress"), removeRestore, veleroRestore("Completed"), files}},
		"before Velero has seen it": {steps: []func(*fake.World){removeRestore}},
		"of one that backs off":     {steps: []func(*fake.World){removeRestore}},
		"after an administrator has removed the Velero Restore": {steps: []func(*fake.World){
			veleroRestore("InProgress"),
			func(w *fake.World) {
				w.Remove(w.VeleroRestore(fake.VeleroName(again)))
				w.RemoveRestoreFiles(fake.VeleroName(again))
			},
			removeRestore,
		}},
		"with its namespace": {steps: []func(*fake.World){veleroRestore("InProgress"), func(w *fake.World) {
			w.Remove(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fake.Namespace}})
			removeRestore(w)
		}}, wantLeft: true},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			s := restoring(t)
			if title == "of one that backs off" {
				s.World.EditRestore(again, func(spec *velerov1.RestoreSpec) { spec.BackupName = "nothing" })
			}
			runRestoreDuring(t, s, test.steps)
			assert.Nil(t, s.World.ReadRestore(again))
			assert.Equal(t, test.wantLeft, s.World.VeleroRestore(fake.VeleroName(again)) != nil)
		})
	}
}

// runRestoreDuring runs the workflow while the steps are taken, one a second, and again for each step that comes after its
// end, as the watcher does.
func runRestoreDuring(t *testing.T, s *workflowtest.Scenario, steps []func(*fake.World)) {
	t.Helper()
	taken := 0
	for run := s; ; run = restoringAgain(s) {
		for i := range len(steps) - taken {
			run.After(time.Duration(i+1)*time.Second, func(w *fake.World) {
				steps[taken](w)
				taken++
			})
		}
		runRestore(t, run)
		if taken == len(steps) {
			return
		}
		steps[taken](s.World)
		taken++
	}
}

// restoringAgain is another run over the world that a run has left.
func restoringAgain(s *workflowtest.Scenario) *workflowtest.Scenario {
	next := locationtest.NewRun(s.World)
	s.World.Restores.Register(next)
	return next
}

func TestARefusedSpecBacksOffUntilItsCauseIsGone(t *testing.T) {
	s := restoring(t)
	workflowtest.Velero("InProgress")(s.World)
	runRestore(t, s)
	nar := s.World.ReadRestore(again)
	require.Equal(t, oadpv1alpha1.NonAdminPhaseBackingOff, nar.Status.Phase)
	assert.Empty(t, nar.Finalizers, "nothing to protect")
	assert.Nil(t, s.World.VeleroRestore(fake.VeleroName(again)))

	workflowtest.Velero("Completed")(s.World)
	next := restoringAgain(s)
	next.After(time.Second, veleroRestore("Failed"))
	runRestore(t, next)
	assert.Equal(t, oadpv1alpha1.NonAdminPhaseCreated, s.World.ReadRestore(again).Status.Phase)
}

func TestARestoreRidesOutAnOutage(t *testing.T) {
	s := restoring(t)
	s.After(time.Second, veleroRestore("InProgress"))
	s.RegisterDelayedCallback(func() {
		veleroRestore("Failed")(s.World)
		s.World.FailReads(func(runtime.Object) error { return fake.ErrAway })
		s.SignalWorkflow(contract.SignalChanged, contract.Changed{})
	}, 2*time.Second)
	s.RegisterDelayedCallback(func() { s.World.FailReads(nil) }, 5*time.Minute)
	begin := s.Now()
	runRestore(t, s)
	assert.Equal(t, velerov1.RestorePhaseFailed, s.World.ReadRestore(again).Status.VeleroRestore.Status.Phase)
	assert.LessOrEqual(t, s.Now().Sub(begin), 5*time.Minute+15*time.Second)
}

func TestASignalInTheLastActivityOfARestoreIsRead(t *testing.T) {
	s := restoring(t)
	s.After(time.Second, veleroRestore("Failed"))
	signalled := false
	s.World.Lose(func(verb string, object client.Object) error {
		nar, is := object.(*oadpv1alpha1.NonAdminRestore)
		final := is && nar.Status.VeleroRestore != nil && nar.Status.VeleroRestore.Status != nil &&
			nar.Status.VeleroRestore.Status.Phase == velerov1.RestorePhaseFailed
		if verb == "patch status" && final && !signalled {
			signalled = true
			s.World.Lose(nil)
			s.World.EditRestore(again, func(spec *velerov1.RestoreSpec) { spec.ScheduleName = "x" })
			s.SignalWorkflow(contract.SignalChanged, contract.Changed{})
		}
		return nil
	})
	runRestore(t, s)
	require.True(t, signalled)
	condition := s.World.ReadRestore(again).Status.Conditions[0]
	assert.Equal(t, metav1.ConditionFalse, condition.Status, "the edit was judged: %s", condition.Message)
}

func TestARestoreContinuesAsNewWithoutForgetting(t *testing.T) {
	s := restoring(t)
	s.RegisterDelayedCallback(func() {
		s.SetContinueAsNewSuggested(true)
		s.SignalWorkflow(contract.SignalChanged, contract.VeleroChanged{Volumes: true})
	}, time.Minute)
	s.ExecuteWorkflow(contract.KindRestore.Workflow, contract.ObjectInput{Cluster: fake.Cluster, Ref: fake.Ref(again)})
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, s.GetWorkflowError(), &next)
	var in contract.RestoreInput
	require.NoError(t, workflowtest.Decode(next, &in))
	assert.WithinDuration(t, s.Now(), in.VeleroPhaseSince, 2*time.Minute)
	assert.Equal(t, contract.RestoreInput{
		ObjectInput: contract.ObjectInput{Cluster: fake.Cluster, Ref: fake.Ref(again), ShownPhase: "Created"}, Volumes: true,
		VeleroPhase: "New", VeleroPhaseSince: in.VeleroPhaseSince,
	}, in)
}

func TestARestoreFromATenantsLocationBringsNothingOfTheCluster(t *testing.T) {
	s := workflowtest.NewScenario(t, append(fake.Taken(workflowtest.Backup, "team-store-1", fake.Namespace), fake.NAR(again, workflowtest.Backup))...)
	s.World.Restores.Register(s)
	// The first attempt makes the ConfigMap and dies.
	failed := false
	s.World.Fail(func(verb string, object client.Object) error {
		if _, is := object.(*velerov1.Restore); is && verb == "create" && !failed {
			failed = true
			return context.DeadlineExceeded
		}
		return nil
	})
	s.After(10*time.Second, veleroRestore("Failed"))
	runRestore(t, s)
	made := s.World.VeleroRestore(fake.VeleroName(again))
	require.NotNil(t, made.Spec.IncludeClusterResources)
	assert.False(t, *made.Spec.IncludeClusterResources)
	require.NotNil(t, s.World.Modifier(made.Spec.ResourceModifier.Name))
	assert.Equal(t, 1, creations(s, "ConfigMap"))
	assert.Equal(t, 1, creations(s, "Restore"))
}

// finalizeBy has a stand-in be the child: it is given the world when it runs, and its result is that of the child.
func finalizeBy(s *workflowtest.Scenario, do func(*fake.World) (contract.FinalizationResult, error)) *int {
	ran := 0
	s.OnWorkflow(contract.KindFinalization.Workflow, mock.Anything, mock.Anything).Return(
		func(ctx workflow.Context, _ contract.ObjectInput) (contract.FinalizationResult, error) {
			if err := workflow.Sleep(ctx, time.Minute); err != nil {
				return contract.FinalizationResult{}, err
			}
			ran++
			return do(s.World)
		})
	return &ran
}

func finalized(phase oadpv1alpha1.FinalizationPhase) func(*fake.World) (contract.FinalizationResult, error) {
	return func(w *fake.World) (contract.FinalizationResult, error) {
		nar := w.ReadRestore(again)
		nar.Status.Finalization = &oadpv1alpha1.RestoreFinalization{Phase: phase}
		return contract.FinalizationResult{Phase: string(phase)}, w.Client.Status().Update(w.Context(), nar)
	}
}

func TestARestoreIsFinalizedOnceWhenVeleroHasDoneItsPart(t *testing.T) {
	for velero, wrapUp := range map[velerov1.RestorePhase]oadpv1alpha1.FinalizationPhase{
		velerov1.RestorePhaseCompleted:       oadpv1alpha1.FinalizationPhasePartiallyFailed,
		velerov1.RestorePhasePartiallyFailed: oadpv1alpha1.FinalizationPhaseCompleted,
	} {
		t.Run(string(velero), func(t *testing.T) {
			s := restoring(t)
			ran := finalizeBy(s, finalized(wrapUp))
			s.After(time.Second, veleroRestore("Finalizing"))
			s.After(2*time.Second, veleroRestore(velero))
			s.After(10*time.Second, func(*fake.World) {}) // a signal while the child is at work
			runRestore(t, s)
			assert.Equal(t, 1, *ran)
			assert.Equal(t, wrapUp, s.World.ReadRestore(again).Status.Finalization.Phase)

			next := restoringAgain(s)
			ran = finalizeBy(next, finalized(wrapUp))
			runRestore(t, next)
			assert.Zero(t, *ran, "it is over")
		})
	}
}

func TestADeletionDuringTheFinalizationIsCarriedOutAfterIt(t *testing.T) {
	s := restoring(t)
	ran := finalizeBy(s, func(*fake.World) (contract.FinalizationResult, error) { return contract.FinalizationResult{}, nil })
	s.After(time.Second, veleroRestore(velerov1.RestorePhaseCompleted))
	s.After(2*time.Second, removeRestore)
	s.After(5*time.Minute, func(w *fake.World) { w.RemoveRestoreFiles(fake.VeleroName(again)) })
	runRestore(t, s)
	assert.Equal(t, 1, *ran)
	assert.Nil(t, s.World.ReadRestore(again))
	assert.Nil(t, s.World.VeleroRestore(fake.VeleroName(again)))
}

func TestAFinalizationThatCannotBeDoneFailsTheRunForAllToSee(t *testing.T) {
	s := restoring(t)
	finalizeBy(s, func(*fake.World) (contract.FinalizationResult, error) {
		return contract.FinalizationResult{}, workflowtest.ErrInvalidBackup
	})
	s.After(time.Second, veleroRestore(velerov1.RestorePhaseCompleted))
	s.ExecuteWorkflow(contract.KindRestore.Workflow, contract.ObjectInput{Cluster: fake.Cluster, Ref: fake.Ref(again)})
	require.ErrorContains(t, s.GetWorkflowError(), "must be a duration")
}
