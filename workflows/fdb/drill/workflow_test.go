package drill_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	fakeclient "sigs.k8s.io/controller-runtime/pkg/client/fake"

	"holdfast.dev/holdfast/activities"
	fdbdrill "holdfast.dev/holdfast/activities/fdb/drill"
	"holdfast.dev/holdfast/k8s"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	foundationdbv1beta2 "holdfast.dev/holdfast/k8s/api/foundationdb/v1beta2"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/workflows"
	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/workflowtest/environment"
)

var ref = contract.ObjectRef{Namespace: "team", Name: "weekly", UID: "0a1b2c3d-1111"}

const sum = "5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8"

// world is a Kubernetes cluster in memory with a drill, its backup and its target, and what the tools answer. It outlives runs of
// the workflow.
type world struct {
	client.Client
	t      *testing.T
	survey contract.FDBDrillSurvey
	check  contract.FDBDrillCheck
	// clears are the outcomes of clearing, the last of them for all further attempts.
	clears []contract.FDBOutcome
	// done is what was done with the databases, in its order.
	done []string
	// reading is called while the tools read, by what they do.
	reading map[string]func()
	// ended is the state that a FoundationDBRestore gets; empty if it never ends.
	ended fdbv1alpha1.ObservedRestoreState
}

func newWorld(t *testing.T) *world {
	t.Helper()
	drill := &fdbv1alpha1.FoundationDBDrill{
		ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name, UID: "0a1b2c3d-1111", Generation: 1},
		Spec:       fdbv1alpha1.FoundationDBDrillSpec{BackupName: "ledger", TargetClusterName: "spare", Timeout: "30m"},
	}
	cluster := func(name, id string, labels map[string]string) *foundationdbv1beta2.FoundationDBCluster {
		made := &foundationdbv1beta2.FoundationDBCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, Labels: labels}}
		made.Spec.Version, made.Status.ConnectionString = "7.3.48", name+":"+id+"@10.0.0.1:4500"
		return made
	}
	backup := &fdbv1alpha1.FoundationDBBackup{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "ledger"}}
	backup.Spec.Credentials.SecretName = "store"
	backup.Status.Backups = []fdbv1alpha1.BackupDetails{{
		Tag: "default", URL: "blobstore://lab@s3.local/ledger?bucket=b", State: "RunningDifferentially",
		LatestRestorable: &fdbv1alpha1.RestorePoint{Version: 900},
	}}
	w := &world{
		t: t, ended: fdbv1alpha1.RestoreCompleted, clears: []contract.FDBOutcome{{Done: true}},
		survey: contract.FDBDrillSurvey{Version: 700, Records: []contract.FDBRangeRecord{{Name: "all", End: `\xff`, Keys: 4, Bytes: 40, Digest: sum}}},
		check: contract.FDBDrillCheck{
			Keys: 4, Bytes: 40, Records: []contract.FDBRangeRecord{{Name: "all", End: `\xff`, Keys: 4, Bytes: 40, Digest: sum}},
		},
	}
	w.Client = fakeclient.NewClientBuilder().WithScheme(k8s.Scheme()).
		WithStatusSubresource(&fdbv1alpha1.FoundationDBDrill{}, &fdbv1alpha1.FoundationDBRestore{}).
		WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}, drill, backup, cluster("ledger", "1", nil), cluster("spare", "2",
			map[string]string{fdbv1alpha1.LabelDrillTarget: fdbv1alpha1.LabelDrillTargetValue})).Build()
	return w
}

func (w *world) did(what string) { w.done = append(w.done, what) }

// reads is what the tools do for a survey or check.
func (w *world) reads(what string) {
	w.did(what)
	if do := w.reading[what]; do != nil {
		do()
	}
}

// drill is as it is now; nil if it is gone.
func (w *world) drill() *fdbv1alpha1.FoundationDBDrill {
	w.t.Helper()
	drill := &fdbv1alpha1.FoundationDBDrill{}
	err := w.Get(w.t.Context(), client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, drill)
	if client.IgnoreNotFound(err) == nil && err != nil {
		return nil
	}
	require.NoError(w.t, err)
	return drill
}

// restore is the drill's FoundationDBRestore; nil if there is none.
func (w *world) restore() *fdbv1alpha1.FoundationDBRestore {
	w.t.Helper()
	list := &fdbv1alpha1.FoundationDBRestoreList{}
	require.NoError(w.t, w.List(w.t.Context(), list))
	if len(list.Items) == 0 {
		return nil
	}
	return &list.Items[0]
}

// step does what the workflow of the FoundationDBRestore does.
func (w *world) step() {
	restore := w.restore()
	if restore == nil || w.ended == "" || restore.Status.State == w.ended {
		return
	}
	restore.Status.State = w.ended
	require.NoError(w.t, w.Status().Update(w.t.Context(), restore))
	w.did("restored")
}

// run is one run of the workflow.
type run struct {
	*testsuite.TestWorkflowEnvironment
	*world
}

func (w *world) run() *run {
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	r := &run{TestWorkflowEnvironment: environment.New(suite), world: w}
	r.SetStartTime(time.Now()) // the activities read the clock
	r.SetTestTimeout(3 * time.Minute)
	workflows.Register(r, call.Options{})
	cluster := activities.Cluster{Client: w.Client, Events: events.NewFakeRecorder(1000), Paused: activities.NeverPaused}
	(&fdbdrill.Activities{Cluster: cluster}).Register(r)
	add := func(name string, do any) { r.RegisterActivityWithOptions(do, activity.RegisterOptions{Name: name}) }
	add(contract.SurveyFDBDrill.Name, func(context.Context, contract.FDBDrillStep) (contract.FDBDrillSurvey, error) {
		w.reads("survey")
		return w.survey, nil
	})
	add(contract.CheckFDBDrill.Name, func(context.Context, contract.FDBDrillStep) (contract.FDBDrillCheck, error) {
		w.reads("check")
		return w.check, nil
	})
	add(contract.RequestFDBCommand.Name, func(_ context.Context, in contract.FDBCommandRequest) (contract.FDBCommandAnswer, error) {
		w.did(string(in.Command.Operation) + " " + in.Cluster)
		require.Nil(w.t, w.restore(), "nothing restores any more")
		require.True(w.t, in.Leave, "a drill wants nothing of the agents")
		outcome := w.clears[0]
		if len(w.clears) > 1 {
			w.clears = w.clears[1:]
		}
		return contract.FDBCommandAnswer{Outcome: &outcome}, nil
	})
	return r
}

// serve runs the workflow until it ends, and lets the restore end soon.
func (r *run) serve() error {
	r.RegisterDelayedCallback(r.step, 5*time.Second)
	r.ExecuteWorkflow(contract.KindFDBDrill.Workflow, contract.ObjectInput{Cluster: "west", Ref: ref})
	require.True(r.t, r.IsWorkflowCompleted())
	return r.GetWorkflowError()
}

func (w *world) verdict() *metav1.Condition {
	w.t.Helper()
	found := meta.FindStatusCondition(w.drill().Status.Conditions, holdfastv1alpha1.ConditionVerified)
	require.NotNil(w.t, found)
	return found
}

func TestADrillRestoresComparesAndClears(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.run().serve())
	assert.Equal(t, []string{"survey", "restored", "check", "clear-target spare:2"}, w.done)
	drill := w.drill()
	assert.Equal(t, fdbv1alpha1.FDBDrillEnded, drill.Status.Phase)
	assert.Empty(t, drill.Finalizers)
	assert.NotNil(t, drill.Status.Cleared)
	assert.EqualValues(t, 700, drill.Status.Version)
	assert.Equal(t, sum, drill.Status.Records[0].Digest)
	assert.Equal(t, &fdbv1alpha1.FoundationDBDrillMeasured{
		RestoreSeconds: drill.Status.Measured.RestoreSeconds, Keys: 4, Bytes: 40,
	}, drill.Status.Measured)
	assert.Equal(t, metav1.ConditionTrue, w.verdict().Status)
	assert.Nil(t, w.restore())
}

func TestWhatDiffersFailsTheDrill(t *testing.T) {
	w := newWorld(t)
	w.check.Records[0].Digest, w.check.Records[0].Keys = "other", 3
	require.NoError(t, w.run().serve())
	assert.Equal(t, holdfastv1alpha1.ReasonChecksFailed, w.verdict().Reason)
	require.Len(t, w.drill().Status.Findings, 1)
	assert.Contains(t, w.drill().Status.Findings[0].Message, "range all: 3 keys of 40 bytes came back, and the source held 4 keys")
	assert.Contains(t, w.done, "clear-target spare:2")
}

func TestATargetThatHoldsDataIsNotTouched(t *testing.T) {
	w := newWorld(t)
	w.survey = contract.FDBDrillSurvey{Refused: "the target holds data"}
	require.NoError(t, w.run().serve())
	assert.Equal(t, []string{"survey"}, w.done)
	assert.Equal(t, holdfastv1alpha1.ReasonNotVerified, w.verdict().Reason)
	assert.Equal(t, metav1.ConditionUnknown, w.verdict().Status)
	assert.Nil(t, w.drill().Status.Begun)
	assert.Empty(t, w.drill().Finalizers)
}

func TestARestoreThatDoesNotEndFailsTheDrill(t *testing.T) {
	w := newWorld(t)
	w.ended = ""
	r := w.run()
	r.RegisterDelayedCallback(func() {
		restore := w.restore()
		restore.Status.State = fdbv1alpha1.RestoreRunning
		meta.SetStatusCondition(&restore.Status.Conditions, metav1.Condition{
			Type: fdbv1alpha1.ConditionIncorrectRestoreState, Status: metav1.ConditionTrue, Reason: fdbv1alpha1.ReasonRestoring,
			Message: "the restore is Running, 40 percent done; its last error: file corrupted",
		})
		require.NoError(t, w.Status().Update(t.Context(), restore))
		drill := w.drill() // activities read the real clock: the deadline passes as if the drill had begun earlier
		started := metav1.NewTime(time.Now().Add(-time.Hour))
		drill.Status.Started = &started
		require.NoError(t, w.Status().Update(t.Context(), drill))
	}, 5*time.Second)
	require.NoError(t, r.serve())
	assert.Equal(t, holdfastv1alpha1.ReasonRestoreFailed, w.verdict().Reason)
	assert.Equal(t, metav1.ConditionFalse, w.verdict().Status)
	assert.Contains(t, w.drill().Status.Findings[0].Message, "file corrupted")
	assert.Equal(t, []string{"survey", "clear-target spare:2"}, w.done)
}

func TestATargetThatCannotBeClearedIsClearedLater(t *testing.T) {
	w := newWorld(t)
	trouble := contract.FDBOutcome{Failure: &contract.FDBFailure{Class: contract.FDBClassTimeout, Message: "no answer"}}
	w.clears = []contract.FDBOutcome{trouble, {Stale: true}, trouble, {Done: true}}
	require.NoError(t, w.run().serve())
	assert.NotNil(t, w.drill().Status.Cleared)
	assert.Equal(t, []string{
		"survey", "restored", "check", "clear-target spare:2", "clear-target spare:2", "clear-target spare:2", "clear-target spare:2",
	}, w.done)
}

func TestAnOwnerThatTakesTheLabelAwayKeepsTheTarget(t *testing.T) {
	w := newWorld(t)
	w.clears = []contract.FDBOutcome{{Stale: true}}
	r := w.run()
	r.RegisterDelayedCallback(func() {
		cluster := &foundationdbv1beta2.FoundationDBCluster{}
		require.NoError(t, w.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "spare"}, cluster))
		cluster.Labels = nil
		require.NoError(t, w.Update(t.Context(), cluster))
	}, 4*time.Second)
	require.NoError(t, r.serve())
	drill := w.drill()
	assert.NotContains(t, w.done, "clear-target spare:2")
	assert.Nil(t, drill.Status.Cleared)
	assert.Empty(t, drill.Finalizers)
	require.NotEmpty(t, drill.Status.Findings)
	assert.Contains(t, drill.Status.Findings[0].Message, "has no label")
}

func TestADrillThatIsDeletedClearsItsTarget(t *testing.T) {
	w := newWorld(t)
	w.ended = ""
	r := w.run()
	r.RegisterDelayedCallback(func() {
		require.NotNil(t, w.restore())
		require.NoError(t, w.Delete(t.Context(), w.drill()))
		r.SignalWorkflow(contract.SignalChanged, contract.Changed{Reason: "deleted"})
	}, 5*time.Second)
	require.NoError(t, r.serve())
	assert.Nil(t, w.drill())
	assert.Nil(t, w.restore())
	assert.Equal(t, []string{"survey", "clear-target spare:2"}, w.done)
}

// What reads the databases is not waited for: it may be retried until the deadline.
func TestADrillThatIsDeletedAmidASurveyOrCheckCancelsIt(t *testing.T) {
	goes := func(*fdbv1alpha1.FoundationDBDrill) {}
	for title, test := range map[string]struct {
		during string
		before func(*fdbv1alpha1.FoundationDBDrill)
		want   []string
	}{
		"survey": {"survey", goes, []string{"survey"}},
		"check":  {"check", goes, []string{"survey", "restored", "check", "clear-target spare:2"}},
		"check, without our finalizer": {
			"check", func(d *fdbv1alpha1.FoundationDBDrill) { d.Finalizers = nil }, []string{"survey", "restored", "check"},
		},
	} {
		t.Run(title, func(t *testing.T) {
			w := newWorld(t)
			r := w.run()
			cancelled := make(chan struct{})
			r.SetOnActivityCanceledListener(func(*activity.Info) { close(cancelled) })
			w.reading = map[string]func(){test.during: func() {
				drill := w.drill()
				test.before(drill)
				require.NoError(t, w.Update(t.Context(), drill))
				require.NoError(t, w.Delete(t.Context(), drill))
				r.SignalWorkflow(contract.SignalChanged, contract.Changed{Reason: "deleted"})
				<-cancelled
			}}
			require.NoError(t, r.serve())
			assert.Nil(t, w.drill())
			assert.Equal(t, test.want, w.done)
		})
	}
}

func TestAnUnrelatedSignalAmidACheckDoesNotDisturbIt(t *testing.T) {
	w := newWorld(t)
	r := w.run()
	var checking atomic.Bool
	read := make(chan struct{}, 2)
	r.SetOnLocalActivityCompletedListener(func(*activity.Info, converter.EncodedValue, error) {
		if checking.Load() {
			read <- struct{}{}
		}
	})
	r.SetOnActivityCanceledListener(func(info *activity.Info) { assert.Fail(t, "cancelled", info.ActivityType.Name) })
	w.reading = map[string]func(){"check": func() {
		checking.Store(true)
		for range 2 {
			r.SignalWorkflow(contract.SignalChanged, contract.Changed{})
			<-read
		}
		checking.Store(false)
	}}
	require.NoError(t, r.serve())
	assert.Equal(t, []string{"survey", "restored", "check", "clear-target spare:2"}, w.done)
	assert.Equal(t, metav1.ConditionTrue, w.verdict().Status)
}

// A run that is lost at any activity, with all that it knew, is followed by another with the same end.
func TestLostAtAnyActivityADrillEndsTheSame(t *testing.T) {
	for lost := 1; ; lost++ {
		w := newWorld(t)
		r := w.run()
		done, cut := 0, false
		count := func() {
			if done++; done == lost {
				cut = true
				r.CancelWorkflow()
			}
		}
		r.SetOnLocalActivityCompletedListener(func(*activity.Info, converter.EncodedValue, error) { count() })
		r.SetOnActivityCompletedListener(func(*activity.Info, converter.EncodedValue, error) { count() })
		err := r.serve()
		if !cut {
			require.NoError(t, err)
			require.Greater(t, lost, 8, "every activity was the last of a run")
			return
		}
		require.NoError(t, w.run().serve(), "lost after activity %d", lost)
		assert.Equal(t, metav1.ConditionTrue, w.verdict().Status, "lost after activity %d: %s", lost, w.verdict().Message)
		assert.NotNil(t, w.drill().Status.Cleared)
		assert.Empty(t, w.drill().Finalizers)
		assert.Nil(t, w.restore())
	}
}

func TestARunContinuesAsNew(t *testing.T) {
	w := newWorld(t)
	w.ended = ""
	r := w.run()
	r.RegisterDelayedCallback(func() {
		r.SetContinueAsNewSuggested(true)
		r.SignalWorkflow(contract.SignalChanged, contract.Changed{})
	}, 6*time.Second)
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, r.serve(), &next)
	w.ended = fdbv1alpha1.RestoreCompleted
	require.NoError(t, w.run().serve())
	assert.Equal(t, metav1.ConditionTrue, w.verdict().Status)
	assert.Equal(t, []string{"survey", "restored", "check", "clear-target spare:2"}, w.done)
}
