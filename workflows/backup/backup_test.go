package backup_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/workflow"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/activitytest"
	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/workflowtest"
)

var input = contract.ObjectInput{Cluster: fake.Cluster, Ref: fake.Ref(workflowtest.Backup)}

func runBackup(t *testing.T, s *workflowtest.Scenario) {
	t.Helper()
	s.ExecuteWorkflow(contract.KindBackup.Workflow, input)
	require.True(t, s.IsWorkflowCompleted())
	require.NoError(t, s.GetWorkflowError())
}

func edit(change func(*oadpv1alpha1.NonAdminBackupSpec)) func(*fake.World) {
	return func(w *fake.World) { w.EditSpec(workflowtest.Backup, change) }
}

func deleteBackup(spec *oadpv1alpha1.NonAdminBackupSpec) { spec.DeleteBackup = true }

func TestBackupIsCreatedMirroredAndSettles(t *testing.T) {
	s := workflowtest.NewScenario(t, fake.NAB(workflowtest.Backup))
	for i, phase := range []velerov1.BackupPhase{"Queued", "SomethingNewer", "InProgress", "Finalizing", "Completed"} {
		s.After(time.Duration(i+1)*time.Second, workflowtest.Velero(phase))
	}
	runBackup(t, s)

	nab := s.World.Read(workflowtest.Backup)
	assert.Equal(t, oadpv1alpha1.NonAdminPhaseCreated, nab.Status.Phase)
	assert.Equal(t, velerov1.BackupPhaseCompleted, nab.Status.VeleroBackup.Status.Phase)
	assert.Zero(t, nab.Status.QueueInfo.EstimatedQueuePosition)
	assert.Equal(t, []string{fake.Namespace}, s.World.Velero(fake.VeleroName(workflowtest.Backup)).Spec.IncludedNamespaces)
	creations := 0
	for _, write := range s.World.Writes() {
		if write == "create Backup" {
			creations++
		}
	}
	assert.Equal(t, 1, creations)
}

func TestUnsettledObjectKeepsItsWorkflow(t *testing.T) {
	s := workflowtest.NewScenario(t, fake.NAB(workflowtest.Backup))
	var details string
	s.RegisterDelayedCallback(func() {
		answer, err := s.QueryWorkflow(contract.QueryState)
		require.NoError(t, err)
		var state contract.State[contract.BackupView]
		require.NoError(t, answer.Get(&state))
		assert.True(t, state.View.Velero.Exists)
		details = workflowtest.CurrentDetails(t, s)
	}, time.Minute)
	// No signal: the workflow looks by itself at every re-read.
	s.RegisterDelayedCallback(func() { workflowtest.Velero(velerov1.BackupPhaseCompleted)(s.World) }, 2*time.Minute)
	runBackup(t, s)
	assert.Contains(t, details, "waits for Velero to start")
	assert.Equal(t, velerov1.BackupPhaseCompleted, s.World.Read(workflowtest.Backup).Status.VeleroBackup.Status.Phase)
}

func TestEveryDeletionEnds(t *testing.T) {
	forceDelete := func(spec *oadpv1alpha1.NonAdminBackupSpec) { spec.ForceDeleteBackup, spec.DeleteBackup = true, true }
	vanish := func(w *fake.World) { w.Remove(w.Velero(fake.VeleroName(workflowtest.Backup))) }
	tests := map[string]struct {
		before   func(*fake.World)
		steps    []func(*fake.World)
		wantGone bool
	}{
		"by deleteBackup": {
			steps:    []func(*fake.World){workflowtest.Velero("Completed"), edit(deleteBackup), func(w *fake.World) { w.AnswerRequests("") }},
			wantGone: true,
		},
		"by deleteBackup, refused twice": {
			steps: []func(*fake.World){
				workflowtest.Velero("Completed"), edit(deleteBackup),
				func(w *fake.World) { w.AnswerRequests("location is read-only") },
				func(w *fake.World) { w.AnswerRequests("location is read-only") },
				func(w *fake.World) { w.AnswerRequests("") },
			},
			wantGone: true,
		},
		"by deleteBackup while Velero works": {
			steps: []func(*fake.World){
				workflowtest.Velero("InProgress"), edit(deleteBackup),
				func(w *fake.World) { assert.Empty(t, w.Requests(), "Velero would refuse") },
				workflowtest.Velero("Completed"), func(w *fake.World) { w.AnswerRequests("") },
			},
			wantGone: true,
		},
		"by deleteBackup while Velero cancels it": {
			steps: []func(*fake.World){
				workflowtest.Velero("Cancelling"), edit(deleteBackup),
				func(w *fake.World) { assert.Empty(t, w.Requests(), "Velero would refuse") },
				workflowtest.Velero("Cancelled"), func(w *fake.World) { w.AnswerRequests("") },
			},
			wantGone: true,
		},
		"by deleteBackup in a phase of tomorrow": {
			steps: []func(*fake.World){
				workflowtest.Velero("OfTomorrow"), edit(deleteBackup),
				func(w *fake.World) { w.AnswerRequests("backup is still in progress") }, // Velero knows
				func(w *fake.World) { w.AnswerRequests("") },
			},
			wantGone: true,
		},
		"by deleteBackup, its Velero Backup having vanished": {
			steps: []func(*fake.World){workflowtest.Velero("Completed"), vanish, edit(deleteBackup)}, wantGone: true,
		},
		"by deleteBackup, its Velero Backup vanishing meanwhile": {
			steps: []func(*fake.World){workflowtest.Velero("Completed"), edit(deleteBackup), func(w *fake.World) {
				w.AnswerRequests("restic is not supported any more")
				vanish(w)
			}}, wantGone: true,
		},
		"by deleteBackup while it waits in Velero's queue": {
			steps: []func(*fake.World){workflowtest.Velero("Queued"), edit(deleteBackup)}, wantGone: true,
		},
		"by deleteBackup, Velero having refused the spec": {
			steps: []func(*fake.World){refuseSpec, edit(deleteBackup)}, wantGone: true,
		},
		"by deleteBackup and a replace that drops the finalizer": {
			steps: []func(*fake.World){workflowtest.Velero("Completed"), func(w *fake.World) {
				nab := w.Read(workflowtest.Backup)
				nab.Finalizers = nil
				require.NoError(t, w.Client.Update(context.Background(), nab))
				w.EditSpec(workflowtest.Backup, deleteBackup)
			}, func(w *fake.World) {
				assert.Len(t, w.Requests(), 1, "the data are being deleted")
				w.AnswerRequests("")
			}}, wantGone: true,
		},
		"by forceDeleteBackup while the policy is unusable": {
			steps: []func(*fake.World){workflowtest.Velero("Completed"), func(w *fake.World) {
				w.PolicyErr = &check.UnusableError{Origin: "ConfigMap", Err: fake.ErrAway}
				w.EditSpec(workflowtest.Backup, func(spec *oadpv1alpha1.NonAdminBackupSpec) { spec.BackupSpec.TTL.Duration = time.Hour })
			}, edit(forceDelete)}, wantGone: true,
		},
		"with its namespace while it is BackingOff and the policy is unusable": {
			before: func(w *fake.World) {
				nab := w.Read(workflowtest.Backup)
				nab.Finalizers = []string{oadpv1alpha1.NabFinalizer}
				require.NoError(t, w.Client.Update(context.Background(), nab))
				w.EditSpec(workflowtest.Backup, func(spec *oadpv1alpha1.NonAdminBackupSpec) { spec.BackupSpec.ExcludedNamespaces = []string{"x"} })
			},
			steps: []func(*fake.World){func(w *fake.World) {
				w.PolicyErr = &check.UnusableError{Origin: "ConfigMap", Err: fake.ErrAway}
				workflowtest.RemoveNamespace(w)
				remove(w)
			}}, wantGone: true,
		},
		"by forceDeleteBackup": {steps: []func(*fake.World){workflowtest.Velero("InProgress"), edit(forceDelete)}, wantGone: true},
		"by a plain delete":    {steps: []func(*fake.World){workflowtest.Velero("Completed"), remove}},
		"by a plain delete, the Velero Backup being gone": {
			steps: []func(*fake.World){workflowtest.Velero("InProgress"), func(w *fake.World) { dropVelero(w) }, remove}, wantGone: true,
		},
		"by a plain delete, the Velero Backup going later": {
			steps: []func(*fake.World){workflowtest.Velero("Completed"), remove, dropVelero}, wantGone: true,
		},
		"by a plain delete, then forceDeleteBackup": {
			steps: []func(*fake.World){workflowtest.Velero("InProgress"), remove, edit(forceDelete)}, wantGone: true,
		},
		"with its namespace": {
			steps: []func(*fake.World){workflowtest.Velero("InProgress"), func(w *fake.World) { workflowtest.RemoveNamespace(w); remove(w) }}, wantGone: true,
		},
		"by deleteBackup before anything was made": {before: edit(deleteBackup), wantGone: true},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			world := fake.New(t, fake.NAB(workflowtest.Backup))
			if test.before != nil {
				test.before(world)
			}
			serve(t, world, test.steps)
			if nab := world.Read(workflowtest.Backup); test.wantGone {
				assert.Nil(t, nab)
				assert.Empty(t, world.Requests(), "nothing left over")
			} else {
				assert.Equal(t, oadpv1alpha1.NonAdminPhaseDeleting, nab.Status.Phase)
				assert.NotNil(t, world.Velero(fake.VeleroName(workflowtest.Backup)))
			}
		})
	}
}

// serve runs the workflow while the steps happen, 20 s apart: longer than the wait before a refused deletion is asked for
// again. A workflow that settled in between is started again by the next step, as the watcher does.
func serve(t *testing.T, world *fake.World, steps []func(*fake.World)) {
	t.Helper()
	for done := 0; ; {
		s := scenarioIn(t, world)
		for i, step := range steps[done:] {
			s.RegisterDelayedCallback(func() {
				step(world)
				done++
				s.SignalWorkflow(contract.SignalChanged, contract.Changed{})
			}, time.Duration(i+1)*20*time.Second)
		}
		runBackup(t, s)
		if done == len(steps) {
			return
		}
		steps[done](world)
		done++
	}
}

// scenarioIn returns an environment over a world that exists.
func scenarioIn(t *testing.T, world *fake.World) *workflowtest.Scenario {
	t.Helper()
	s := workflowtest.NewScenario(t)
	s.World = world
	world.Backups.Register(workflowtest.Reregistration{Scenario: s})
	return s
}

// refuseSpec: Velero ends a backup that it finds invalid without having begun it.
func refuseSpec(w *fake.World) {
	made := w.Velero(fake.VeleroName(workflowtest.Backup))
	made.Status.Phase = velerov1.BackupPhaseFailedValidation
	made.Status.ValidationErrors = []string{"excludes list cannot contain '*'"}
	_ = w.Client.Update(context.Background(), made)
}

// Signals must not put off the next request to delete.
func TestDeletionIsAskedAgainAmidSignals(t *testing.T) {
	s := workflowtest.NewScenario(t, fake.NAB(workflowtest.Backup))
	s.After(time.Second, workflowtest.Velero("InProgress"))
	s.After(2*time.Second, edit(deleteBackup))
	s.After(3*time.Second, workflowtest.Velero("Completed"))
	s.After(4*time.Second, func(w *fake.World) { w.AnswerRequests("the location is read-only") })
	for i := range 10 {
		s.After(time.Duration(6+2*i)*time.Second, func(*fake.World) {}) // one every 2 s; the first wait is 5 s
	}
	requests := 0
	s.After(30*time.Second, func(w *fake.World) {
		requests = len(w.Requests())
		w.AnswerRequests("")
	})
	runBackup(t, s)
	assert.Equal(t, 2, requests, "asked again")
	assert.Nil(t, s.World.Read(workflowtest.Backup))
}

// What does not fit must not be tried for ever.
func TestObjectTooLargeForACopyGoesOnWithoutIt(t *testing.T) {
	s := workflowtest.NewScenario(t, fake.NAB(workflowtest.Backup))
	s.World.Fail(func(_ string, object client.Object) error {
		nab, ok := object.(*oadpv1alpha1.NonAdminBackup)
		if ok && nab.Status.VeleroBackup != nil && nab.Status.VeleroBackup.Spec != nil {
			return apierrors.NewInternalError(errors.New("etcdserver: request is too large"))
		}
		return nil
	})
	s.After(time.Second, workflowtest.Velero(velerov1.BackupPhaseCompleted))
	runBackup(t, s)
	nab := s.World.Read(workflowtest.Backup)
	assert.Equal(t, velerov1.BackupPhaseCompleted, nab.Status.VeleroBackup.Status.Phase)
	assert.Nil(t, nab.Status.VeleroBackup.Spec)
}

func remove(w *fake.World) { _ = w.Client.Delete(context.Background(), w.Read(workflowtest.Backup)) }

func dropVelero(w *fake.World) {
	_ = w.Client.Delete(context.Background(), w.Velero(fake.VeleroName(workflowtest.Backup)))
}

// A signal that comes while the last activity runs must be read before the workflow ends.
func TestSignalDuringTheLastActivityIsRead(t *testing.T) {
	s := workflowtest.NewScenario(t, fake.NAB(workflowtest.Backup))
	s.After(time.Second, workflowtest.Velero(velerov1.BackupPhaseCompleted))
	refreshes, last := 0, 0
	s.RegisterActivityWithOptions(func(_ context.Context, step contract.BackupStep) (contract.BackupView, error) {
		refreshes++
		view, err := activitytest.Run(t, s.World, contract.RefreshBackup.Name, step)
		if view.Velero.Finished && last == 0 {
			last = refreshes
			s.World.EditSpec(workflowtest.Backup, func(spec *oadpv1alpha1.NonAdminBackupSpec) { spec.BackupSpec.ExcludedNamespaces = []string{"x"} })
			s.SignalWorkflow(contract.SignalChanged, contract.Changed{Reason: "during the last activity"})
		}
		return view, err
	}, activity.RegisterOptions{Name: contract.RefreshBackup.Name, DisableAlreadyRegisteredCheck: true})
	runBackup(t, s)
	assert.Greater(t, refreshes, last, "the signal was not read")
	accepted := condition(s.World.Read(workflowtest.Backup))
	assert.Equal(t, oadpv1alpha1.ReasonInvalidBackupSpec, accepted.Reason)
	assert.EqualValues(t, 2, accepted.ObservedGeneration)
}

func condition(nab *oadpv1alpha1.NonAdminBackup) metav1.Condition {
	for _, c := range nab.Status.Conditions {
		if c.Type == string(oadpv1alpha1.NonAdminConditionAccepted) {
			return c
		}
	}
	return metav1.Condition{}
}

// Two runs in a row: what the first knew, the second reads from the objects.
func TestContinueAsNew(t *testing.T) {
	s := workflowtest.NewScenario(t, fake.NAB(workflowtest.Backup))
	s.SetContinueAsNewSuggested(true)
	s.ExecuteWorkflow(contract.KindBackup.Workflow, input)
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, s.GetWorkflowError(), &next)
	require.NotNil(t, s.World.Velero(fake.VeleroName(workflowtest.Backup)))

	second := workflowtest.NewScenario(t)
	second.World = s.World
	second.World.Backups.Register(workflowtest.Reregistration{Scenario: second})
	var carried contract.BackupInput
	require.NoError(t, workflowtest.Decode(next, &carried))
	assert.Equal(t, input.Ref, carried.Ref)
	assert.Equal(t, "Created", carried.ShownPhase)
	second.After(time.Second, workflowtest.Velero(velerov1.BackupPhaseCompleted))
	second.ExecuteWorkflow(contract.KindBackup.Workflow, carried)
	require.NoError(t, second.GetWorkflowError())
	assert.Equal(t, velerov1.BackupPhaseCompleted, s.World.Read(workflowtest.Backup).Status.VeleroBackup.Status.Phase)
}

// The API server is away for longer than any local attempt, and then for longer than --resource-timeout.
func TestOutageOfTheAPIServerEndsInTheRightStatus(t *testing.T) {
	for title, outage := range map[string]time.Duration{
		"of 30 s": 30 * time.Second, "of 300 s": 300 * time.Second, "of an hour": time.Hour,
	} {
		t.Run(title, func(t *testing.T) {
			s := workflowtest.NewScenario(t, fake.NAB(workflowtest.Backup))
			s.After(time.Second, workflowtest.Velero(velerov1.BackupPhaseInProgress))
			s.After(2*time.Second, func(w *fake.World) {
				workflowtest.Velero(velerov1.BackupPhaseCompleted)(w)
				w.Fail(func(string, client.Object) error { return fake.ErrAway })
			})
			s.RegisterDelayedCallback(func() { s.World.Fail(nil) }, 2*time.Second+outage)
			runBackup(t, s)
			assert.Equal(t, velerov1.BackupPhaseCompleted, s.World.Read(workflowtest.Backup).Status.VeleroBackup.Status.Phase)
		})
	}
}

func TestPermanentRefusalIsShownOnTheObject(t *testing.T) {
	s := workflowtest.NewScenario(t, fake.NAB(workflowtest.Backup))
	s.World.Fail(func(verb string, object client.Object) error {
		if _, isBackup := object.(*velerov1.Backup); isBackup && verb == "create" {
			return workflowtest.ErrInvalidBackup
		}
		return nil
	})
	runBackup(t, s)
	nab := s.World.Read(workflowtest.Backup)
	assert.Equal(t, oadpv1alpha1.NonAdminPhaseBackingOff, nab.Status.Phase)
	assert.Equal(t, "VeleroBackupRefused", condition(nab).Reason)
	assert.Contains(t, condition(nab).Message, "spec.ttl")
}
