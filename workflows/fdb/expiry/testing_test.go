package expiry_test

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
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows"
	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/workflowtest"
	"holdfast.dev/holdfast/workflows/workflowtest/environment"
)

var (
	turnRef   = contract.ObjectRef{Namespace: "team", Name: "lab", UID: "u"}
	turnStart = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	newest    = fdbPlace("new")
	older     = fdbPlace("old")
	oldest    = fdbPlace("oldest")
)

const (
	turnID   = "west/fdb-expiry/team/lab/u"
	backupID = "west/fdbb/team/lab/u"
)

func fdbPlace(path string) contract.FDBPlace {
	return contract.FDBPlace{
		URL: "blobstore://lab@s3.local/" + path + "?bucket=fdb", Container: "s3.local:443/fdb/" + path,
	}
}

// turnPod is a pod of the world. ends is its result after lasts; nil leaves it running until it is deleted.
type turnPod struct {
	contract.FDBPodView
	step   contract.FDBPodStep
	ends   time.Time
	result *contract.FDBPodResult
	goneAt time.Time
}

// turnWorld is what a turn deals with: pods, guards, the backup and the queue. It outlives runs of the workflow.
type turnWorld struct {
	mu      sync.Mutex
	options call.Options
	plans   []contract.FDBExpiryPlan // the last one stays
	pods    map[string]*turnPod
	// results by the pod's number, and how long each takes. lingers is how long a deleted pod takes to go away; below zero for ever.
	results map[int]*contract.FDBPodResult
	lasts   time.Duration
	lingers time.Duration
	refused string // why the API server refuses pods
	// answers of guards, by container; Held unless set. mute are those that do not answer.
	answers map[string]contract.FDBContainerAnswer
	mute    map[string]bool
	// log is what was done, in its order.
	log      []string
	result   *contract.FDBExpiryResult
	reported int
	// closings is how often the queue got the report that only a pod in termination is left.
	closings int
	at       map[string]time.Duration
	now      func() time.Time
}

func newTurnWorld(plans ...contract.FDBExpiryPlan) *turnWorld {
	return &turnWorld{
		plans: plans, pods: map[string]*turnPod{}, results: map[int]*contract.FDBPodResult{}, lasts: time.Minute,
		lingers: 5 * time.Second, answers: map[string]contract.FDBContainerAnswer{}, mute: map[string]bool{},
		at: map[string]time.Duration{},
	}
}

func (w *turnWorld) did(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.log = append(w.log, text)
	w.at[text] = w.now().Sub(turnStart)
}

func podName(step contract.FDBPodStep) string {
	if step.Name != "" {
		return step.Name
	}
	return fmt.Sprintf("lab-%d-%d", step.Turn, step.Number)
}

func paths(places []contract.FDBPlace) string {
	var all []string
	for _, place := range places {
		all = append(all, place.Container[strings.LastIndex(place.Container, "/")+1:])
	}
	return strings.Join(all, "+")
}

// view is the pod as it is now.
func (w *turnWorld) view(name string) contract.FDBPodView {
	pod := w.pods[name]
	if pod == nil || (!pod.goneAt.IsZero() && !w.now().Before(pod.goneAt)) {
		delete(w.pods, name)
		return contract.FDBPodView{Name: name}
	}
	if !pod.ends.IsZero() && !w.now().Before(pod.ends) && pod.result != nil {
		pod.Ended, pod.Result = true, pod.result
	}
	return pod.FDBPodView
}

func (w *turnWorld) apply(_ context.Context, step contract.FDBPodStep) (contract.FDBPodView, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := podName(step)
	if view := w.view(name); view.Found {
		return view, nil
	}
	for other := range w.pods {
		if w.view(other).Found {
			return contract.FDBPodView{}, errors.New("a second pod beside " + other)
		}
	}
	what := "delete " + paths(step.Delete)
	if step.Expire != nil {
		what = "expire " + paths([]contract.FDBPlace{step.Expire.FDBPlace})
	}
	w.did("pod %d %s", step.Number, what)
	if w.refused != "" {
		return contract.FDBPodView{Name: name, Refused: true, Failed: w.refused}, nil
	}
	w.pods[name] = &turnPod{
		FDBPodView: contract.FDBPodView{Name: name, Found: true, Started: true, Created: w.now().Unix()}, step: step,
		ends: w.now().Add(w.lasts), result: w.results[step.Number],
	}
	return w.view(name), nil
}

func (w *turnWorld) remove(ctx context.Context, step contract.FDBPodStep) (contract.FDBPodView, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if activity.GetInfo(ctx).IsLocalActivity { // what was read of the pod might not be in the history yet
		return contract.FDBPodView{}, temporal.NewNonRetryableApplicationError("a pod is not deleted by a local activity", "", nil)
	}
	name := podName(step)
	if w.view(name).Found && !w.pods[name].Terminating {
		w.did("remove %s", name)
		w.terminate(name)
	}
	return w.view(name), nil
}

func (w *turnWorld) terminate(name string) {
	pod := w.pods[name]
	pod.Terminating = true
	if w.lingers >= 0 {
		pod.goneAt = w.now().Add(w.lingers)
	}
}

func (w *turnWorld) guard(_ context.Context, request contract.FDBContainerRequest) (contract.FDBContainerAnswer, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mute[request.Container] {
		return contract.FDBContainerAnswer{}, errors.New("no worker serves it")
	}
	what := paths([]contract.FDBPlace{{Container: request.Container}})
	answer := contract.FDBContainerAnswer{}
	switch request.Action {
	case contract.FDBContainerExpire, contract.FDBContainerDelete:
		answer.Held = true
		if set, is := w.answers[what]; is {
			answer = set
		}
		if request.Of != backupID || request.User.WorkflowID != turnID {
			return answer, errors.New("a request for another backup")
		}
	}
	word := string(request.Action)
	if request.User.WorkflowID == backupID {
		word = "backup " + word
	}
	if (request.Action == contract.FDBContainerExpire || request.Action == contract.FDBContainerDelete) && !answer.Held {
		word += " refused"
	}
	w.did("%s %s", word, what)
	return answer, nil
}

func (w *turnWorld) report(_ context.Context, reports contract.FDBTurnReports) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if reports.Cluster != "west" || reports.Ref != turnRef {
		return errors.New("a report of another backup")
	}
	if result := reports.Result; result != nil {
		w.result = result
		w.reported++
		w.did("result %s %s", result.Outcome, result.Reason)
	}
	if report := reports.Report; report != nil {
		if report.Ended {
			for name := range w.pods {
				if w.view(name).Found {
					return errors.New("ended while a pod is there")
				}
			}
			w.did("ended %s", report.Outcome)
		} else if report.Closing {
			if w.closings++; !w.happened("closing") {
				w.did("closing")
			}
		}
	}
	return nil
}

// turnRun is one run of the workflow.
type turnRun struct {
	*testsuite.TestWorkflowEnvironment
	*turnWorld
}

func (w *turnWorld) run() *turnRun {
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	r := &turnRun{TestWorkflowEnvironment: environment.New(suite), turnWorld: w}
	w.now = r.Now
	r.SetStartTime(turnStart)
	r.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: turnID})
	workflows.Register(r, w.options)
	add := func(name string, do any) { r.RegisterActivityWithOptions(do, activity.RegisterOptions{Name: name}) }
	add(contract.PlanFDBExpiry.Name, func(context.Context, contract.FDBExpiryStep) (contract.FDBExpiryPlan, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		plan := w.plans[0]
		if len(w.plans) > 1 {
			w.plans = w.plans[1:]
		}
		return plan, nil
	})
	add(contract.ApplyFDBPod.Name, w.apply)
	add(contract.ObserveFDBPod.Name, func(_ context.Context, step contract.FDBPodStep) (contract.FDBPodView, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.view(podName(step)), nil
	})
	add(contract.DeleteFDBPod.Name, w.remove)
	add(contract.RequestFDBContainer.Name, w.guard)
	add(contract.ReportFDBTurn.Name, w.report)
	return r
}

// After calls do that long after the start, and signals the workflow as the watcher does.
func (r *turnRun) After(delay time.Duration, do func()) {
	r.RegisterDelayedCallback(func() {
		r.mu.Lock()
		do()
		r.mu.Unlock()
		r.SignalWorkflow(contract.SignalChanged, contract.Changed{Reason: "pod"})
	}, delay)
}

const firstTurn = 1785585600 // turnStart

func expiring() contract.FDBExpiryInput {
	return contract.FDBExpiryInput{Cluster: "west", Ref: turnRef, Job: contract.FDBJobExpire, Turn: firstTurn}
}

func deleting() contract.FDBExpiryInput {
	in := expiring()
	in.Job = contract.FDBJobDelete
	return in
}

// ends runs the turn to its end.
func (r *turnRun) ends(t *testing.T, in contract.FDBExpiryInput) {
	t.Helper()
	r.ExecuteWorkflow(contract.KindFDBExpiry.Workflow, in)
	require.True(t, r.IsWorkflowCompleted())
	require.NoError(t, r.GetWorkflowError())
	require.Equal(t, 1, r.reported, "the backup gets one report: %q", r.log)
	require.True(t, strings.HasPrefix(r.log[len(r.log)-1], "ended "), "%q", r.log)
	require.Equal(t, in.Turn, r.result.Turn)
	require.Equal(t, in.Job, r.result.Job)
	require.NotZero(t, r.result.At)
	r.gaveBack(t)
}

// gaveBack checks that all that was held was released.
func (r *turnRun) gaveBack(t *testing.T) {
	t.Helper()
	for _, step := range r.log {
		for _, action := range []string{"expire ", "delete "} {
			if container, is := strings.CutPrefix(step, action); is && !strings.Contains(step, "refused") {
				require.Contains(t, r.log, "release "+container)
			}
		}
	}
}

// goesOn runs the turn until it continues as new, and returns the next run's input.
func (r *turnRun) goesOn(t *testing.T, in contract.FDBExpiryInput) contract.FDBExpiryInput {
	t.Helper()
	r.ExecuteWorkflow(contract.KindFDBExpiry.Workflow, in)
	var again *workflow.ContinueAsNewError
	require.ErrorAs(t, r.GetWorkflowError(), &again)
	var next contract.FDBExpiryInput
	require.NoError(t, workflowtest.Decode(again, &next))
	return next
}

func (w *turnWorld) happened(step string) bool { return slices.Contains(w.log, step) }

// described returns a container that can be restored from that many days before the turn.
func described(days int) *contract.FDBContainer {
	since := turnStart.AddDate(0, 0, -days).Unix()
	return &contract.FDBContainer{
		URL: newest.URL, Restorable: true, Oldest: &contract.FDBPoint{Version: since, Time: since},
		Latest: &contract.FDBPoint{Version: turnStart.Unix(), Time: turnStart.Unix()},
	}
}

// toExpire returns a plan that keeps 7 days and deletes what is older than 30.
func toExpire(olders ...contract.FDBPlace) contract.FDBExpiryPlan {
	return contract.FDBExpiryPlan{
		Owner: "team/lab", Delete: olders,
		Expire: &contract.FDBExpire{
			FDBPlace: newest, Before: turnStart.AddDate(0, 0, -30).Unix(), RestorableAfter: turnStart.AddDate(0, 0, -7).Unix(),
		},
	}
}

func expiredTo(before, after int) *contract.FDBPodResult {
	return &contract.FDBPodResult{Before: described(before), After: described(after)}
}

func troubled(class contract.FDBClass, before *contract.FDBContainer) *contract.FDBPodResult {
	return &contract.FDBPodResult{Failure: &contract.FDBFailure{Class: class, Message: "the tool says so"}, Before: before}
}
