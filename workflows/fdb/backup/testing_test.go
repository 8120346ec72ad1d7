package backup_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/activities/fdb/gather"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/workflows"
	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	fdbbackup "holdfast.dev/holdfast/workflows/fdb/backup"
	"holdfast.dev/holdfast/workflows/workflowtest"
	"holdfast.dev/holdfast/workflows/workflowtest/environment"
)

// backupWorld is one FoundationDBBackup, its database, and those that its workflow talks to. It outlives runs of the workflow.
type backupWorld struct {
	mu      sync.Mutex
	options call.Options
	object  *fdbv1alpha1.FoundationDBBackup
	agents  contract.FDBAgentsView
	owner   string
	gone    bool // the FoundationDBCluster
	ending  bool // the namespace
	tag     contract.FDBTag
	paused  bool
	// silent: the database does not answer; failing, by operation, is the failure of a command.
	silent  bool
	failing map[contract.FDBOperation]*contract.FDBFailure
	// grants: a slot is granted as soon as it is requested.
	grants bool
	// log is what was done, in its order; observe, inspect and publish only with their count.
	log       []string
	counts    map[string]int
	at        map[string][]time.Time
	abandoned string
	// released are the releases; queued and guarded the requests to the queue of expirations and to the guards.
	released []contract.FDBRelease
	queued   []contract.FDBJob
	guarded  []string
	deaf     bool // the guards do not answer
	now      func() time.Time
	// on is called at the beginning of every activity.
	on func(name string)
}

func newBackupWorld() *backupWorld {
	return &backupWorld{
		object: &fdbv1alpha1.FoundationDBBackup{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "lab", UID: "u", Generation: 1, Finalizers: bothFinalizers()},
			Spec:       fdbv1alpha1.FoundationDBBackupSpec{SnapshotPeriodSeconds: 100},
		},
		owner: "lab:1", grants: true, failing: map[contract.FDBOperation]*contract.FDBFailure{},
		tag:    contract.FDBTag{Tag: "default", State: fdb.StateNeverRan},
		counts: map[string]int{}, at: map[string][]time.Time{}, on: func(string) {},
	}
}

func bothFinalizers() []string {
	return []string{fdbv1alpha1.FinalizerStop, fdbv1alpha1.FinalizerDelete}
}

// takeFinalizer adds a finalizer, as a user or an activity does.
func (w *backupWorld) takeFinalizer(name string) {
	w.object.Finalizers = slices.DeleteFunc(w.object.Finalizers, func(held string) bool { return held == name })
}

// restorable returns a world whose backup runs as the spec says.
func restorable() *backupWorld {
	w := newBackupWorld()
	const url = "blobstore://lab@s3.local/lab-2026-08-01T10-00-00Z?bucket=fdb-backups"
	w.agents = contract.FDBAgentsView{Exists: true, Ours: true, Current: true, RolledOut: true, Wanted: 3, Ready: 3}
	w.tag = contract.FDBTag{
		Tag: "default", State: fdb.StateRunningDifferentially, Running: true, Restorable: true, URL: url, SnapshotPeriodSeconds: 100,
	}
	w.object.Status.Backups = []fdbv1alpha1.BackupDetails{{Tag: "default", URL: url, State: fdb.StateRunningDifferentially}}
	return w
}

func (w *backupWorld) view() contract.FDBBackupView {
	if !w.object.DeletionTimestamp.IsZero() && len(w.object.Finalizers) == 0 {
		return contract.FDBBackupView{}
	}
	objects := &gather.Objects{Object: w.object, Destination: fdb.Destination{Account: "lab", Host: "s3.local", Bucket: "fdb-backups", Path: "lab"}}
	if w.object.Spec.Destination.Path != "" {
		objects.Destination.Path = w.object.Spec.Destination.Path
	}
	if !w.gone {
		objects.Cluster = &gather.Cluster{Name: "lab", ConnectionString: w.owner + "@10.0.0.1:4500", Version: "7.3.48"}
	}
	view := objects.View()
	view.Agents, view.NamespaceEnding = w.agents, w.ending
	return view
}

// change changes the spec while nothing of the workflow runs.
func (w *backupWorld) change(change func(*fdbv1alpha1.FoundationDBBackup)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(w.object)
	w.object.Generation++
}

func (w *backupWorld) begin(name string) func() {
	w.mu.Lock()
	w.counts[name]++
	w.at[name] = append(w.at[name], w.now())
	w.on(name)
	return w.mu.Unlock
}

func (w *backupWorld) did(format string, args ...any) {
	w.log = append(w.log, strings.TrimSpace(fmt.Sprintf(format, args...)))
}

// backupRun is one run of the workflow.
type backupRun struct {
	*testsuite.TestWorkflowEnvironment
	*backupWorld
	start time.Time
}

func (w *backupWorld) run() *backupRun {
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	r := &backupRun{TestWorkflowEnvironment: environment.New(suite), backupWorld: w}
	r.start = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	w.now = r.Now
	r.SetStartTime(r.start)
	workflows.Register(r, w.options)
	add := func(name string, do any) { r.RegisterActivityWithOptions(do, activity.RegisterOptions{Name: name}) }
	add(contract.ObserveFDBBackup.Name, func(context.Context, contract.ObjectStep) (contract.FDBBackupView, error) {
		defer w.begin("observe")()
		if !fdbbackup.DeletionRequested(w.object) {
			w.takeFinalizer(fdbv1alpha1.FinalizerDelete)
		}
		return w.view(), nil
	})
	add(contract.ApplyFDBAgents.Name, func(context.Context, contract.ObjectStep) (contract.FDBBackupView, error) {
		defer w.begin("agents")()
		w.did("agents")
		w.agents = contract.FDBAgentsView{Exists: true, Ours: true, Current: true, RolledOut: true, Wanted: 3, Ready: 3}
		return w.view(), nil
	})
	add(contract.PlanFDBBackup.Name, func(_ context.Context, plan contract.FDBPlan) (contract.FDBBackupView, error) {
		defer w.begin("plan")()
		w.did("plan")
		err := gather.ApplyPlan(w.object, w.view().Desired, time.Unix(plan.At, 0))
		return w.view(), err
	})
	add(contract.PublishFDBBackup.Name, func(_ context.Context, findings contract.FDBFindings) (contract.FDBBackupView, error) {
		defer w.begin("publish")()
		gather.ApplyFindings(w.object, findings, w.now())
		return w.view(), nil
	})
	add(contract.ReleaseFDBBackup.Name, func(_ context.Context, release contract.FDBRelease) (contract.FDBBackupView, error) {
		defer w.begin("release")()
		w.did("release")
		w.released = append(w.released, release)
		if slices.Contains(w.object.Finalizers, fdbv1alpha1.FinalizerStop) {
			w.abandoned = release.Abandoned
		}
		w.takeFinalizer(fdbv1alpha1.FinalizerStop)
		if release.Data {
			w.takeFinalizer(fdbv1alpha1.FinalizerDelete)
		}
		return w.view(), nil
	})
	add(contract.SignalFDBExpiryQueue.Name, func(_ context.Context, request contract.FDBQueueRequest) error {
		defer w.begin("queue")()
		w.queued = append(w.queued, request.Job)
		return nil
	})
	add(contract.RequestFDBContainer.Name, func(_ context.Context, request contract.FDBContainerRequest) (contract.FDBContainerAnswer, error) {
		defer w.begin("guard")()
		if w.deaf {
			return contract.FDBContainerAnswer{}, errors.New("it does not answer")
		}
		text := fmt.Sprintf("%s %s by %s", request.Action, request.Container, request.User.WorkflowID)
		if request.Fresh {
			text += ", fresh"
		}
		w.guarded = append(w.guarded, text)
		return contract.FDBContainerAnswer{}, nil
	})
	add(contract.InspectFDBBackup.Name, w.inspect)
	add(contract.RequestFDBCommand.Name, w.request)
	add(contract.SignalFDBThrottle.Name, func(_ context.Context, request contract.FDBSlotRequest) error {
		defer w.begin("request")()
		w.did("request %s", request.Action)
		if request.Action == contract.FDBSlotAcquire && w.grants {
			r.RegisterDelayedCallback(r.grant, time.Second)
		}
		return nil
	})
	return r
}

func (r *backupRun) grant() { r.SignalWorkflow(contract.SignalSlotGranted, contract.FDBSlotGrant{}) }

func (r *backupRun) signal() {
	r.SignalWorkflow(contract.SignalChanged, contract.Changed{Reason: "changed"})
}

func (w *backupWorld) inspect(context.Context, contract.FDBInspect) (contract.FDBInspection, error) {
	defer w.begin("inspect")()
	if w.silent {
		return contract.FDBInspection{Failure: &contract.FDBFailure{Class: contract.FDBClassTimeout, Message: "the cluster does not answer"}}, nil
	}
	return contract.FDBInspection{AgentsPaused: w.paused, Tags: []contract.FDBTag{w.tag}}, nil
}

func (w *backupWorld) request(_ context.Context, request contract.FDBCommandRequest) (contract.FDBCommandAnswer, error) {
	defer w.begin("owner")()
	switch {
	case request.Command == nil && request.Leave:
		w.did("leave %s", request.Cluster)
		return contract.FDBCommandAnswer{}, nil
	case request.Command == nil:
		w.did("join %s", request.Cluster)
		return contract.FDBCommandAnswer{}, nil
	}
	command := *request.Command
	w.did("%s %s", command.Operation, command.Tag)
	if trouble := w.failing[command.Operation]; trouble != nil {
		return contract.FDBCommandAnswer{Outcome: &contract.FDBOutcome{Failure: trouble}}, nil
	}
	switch command.Operation {
	case contract.FDBStart:
		w.tag = contract.FDBTag{Tag: command.Tag, UID: "1", State: fdb.StateSubmitted, Running: true, URL: command.URL}
	case contract.FDBAbort:
		w.tag.State, w.tag.Running = fdb.StateAborted, false
	case contract.FDBModify:
		w.tag.URL, w.tag.SnapshotPeriodSeconds = command.URL, w.object.Spec.SnapshotPeriodSeconds
	case contract.FDBPause, contract.FDBResume:
		w.paused = command.Operation == contract.FDBPause
	}
	return contract.FDBCommandAnswer{Outcome: &contract.FDBOutcome{Done: true}}, nil
}

// snapshot completes the first snapshot of what was started.
func (w *backupWorld) snapshot() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tag.State, w.tag.Restorable, w.tag.SnapshotPeriodSeconds = fdb.StateRunningDifferentially, true, w.object.Spec.SnapshotPeriodSeconds
}

// After calls do that long after the start.
func (r *backupRun) After(delay time.Duration, do func()) { r.RegisterDelayedCallback(do, delay) }

// serve runs the workflow until it ends, or until that long after its start, when it goes on in another run. It returns that
// run's input, nil if it has ended.
func (r *backupRun) serve(t *testing.T, in contract.FDBBackupInput, limit time.Duration) *contract.FDBBackupInput {
	t.Helper()
	in.Cluster, in.Ref = "west", contract.ObjectRef{Namespace: "team", Name: "lab", UID: "u"}
	cut := -1 // the signal that ends the run is none of the story
	r.After(limit, func() {
		cut = len(r.log)
		r.SetContinueAsNewSuggested(true)
		r.signal()
	})
	r.ExecuteWorkflow(contract.KindFDBBackup.Workflow, in)
	require.True(t, r.IsWorkflowCompleted())
	if cut >= 0 {
		r.log = r.log[:cut]
	}
	err := r.GetWorkflowError()
	if err == nil {
		return nil
	}
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, err, &next)
	carried := &contract.FDBBackupInput{}
	require.NoError(t, workflowtest.Decode(next, carried))
	return carried
}

// reasons returns those of the conditions that hold, except Ready.
func (w *backupWorld) reasons() []string {
	var all []string
	for _, condition := range fdbv1alpha1.Unmet(w.object.Status.Conditions) {
		all = append(all, condition.Reason)
	}
	return all
}

func (w *backupWorld) happened(step string) bool { return slices.Contains(w.log, step) }
