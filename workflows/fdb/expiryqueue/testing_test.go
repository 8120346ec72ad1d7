package expiryqueue_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
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

// queueStep is an event for a queue, or around it, at a time after the start.
type queueStep struct {
	at time.Duration
	do func(*queueWorld)
}

// queuePod is what is left of a turn in Kubernetes.
type queuePod struct {
	turn        int64
	job         contract.FDBJob
	terminating bool
}

// queueObject is a FoundationDBBackup with a policy, or one that is being deleted.
type queueObject struct {
	ref contract.ObjectRef
	job contract.FDBJob
	// out: an operator has removed it from the queue, and it has not asked since.
	out bool
}

// queueWorld runs a queue, over as many runs as needed, among objects, pods and the workflows of turns.
type queueWorld struct {
	mu       sync.Mutex
	start    time.Time
	options  call.Options
	limitSet int
	objects  map[string]*queueObject     // by name
	born     map[string]int              // how many objects there were of a name
	gone     map[contract.ObjectRef]bool // were deleted with their data
	flows    map[contract.ObjectRef]queuePod
	pods     map[contract.ObjectRef]queuePod
	ended    map[queueTurn]bool // have reported their ends
	seen     map[queueTurn]bool
	called   map[string]time.Duration // when an activity was first called
	closedAt map[queueTurn]time.Duration
	begun    map[contract.ObjectRef][]time.Duration
	order    []string // "seconds job name" of begins, "again" if it was not the first of its turn
	answers  []string // of Updates
	// refused starts fail before, lost ones after their effect.
	// never is a name whose turns Temporal does not accept.
	refused, lost int
	never         string
	away          error // of checks which workflows run
	wrong         []string

	send  []any
	steps []queueStep
	roll  bool
	lose  bool
	runs  int
	env   *testsuite.TestWorkflowEnvironment // nil if it does not run
	now   time.Duration
}

type queueTurn struct {
	ref  contract.ObjectRef
	turn int64
}

func newQueueWorld(limit int) *queueWorld {
	return &queueWorld{
		start: time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC), options: call.Options{FDBExpiryLimit: limit},
		objects: map[string]*queueObject{}, born: map[string]int{}, flows: map[contract.ObjectRef]queuePod{},
		pods: map[contract.ObjectRef]queuePod{}, ended: map[queueTurn]bool{}, seen: map[queueTurn]bool{},
		begun: map[contract.ObjectRef][]time.Duration{}, called: map[string]time.Duration{},
		closedAt: map[queueTurn]time.Duration{}, gone: map[contract.ObjectRef]bool{},
	}
}

// play runs the queue through the steps, which are in the order of their times. When it does not run, a signal starts it.
func (w *queueWorld) play(steps []queueStep) error {
	w.steps = steps
	for len(w.steps) > 0 || len(w.send) > 0 {
		if len(w.send) == 0 {
			step := w.steps[0]
			w.steps, w.now = w.steps[1:], step.at
			step.do(w)
			w.roll, w.lose = false, false // there is nothing to continue, or to lose
			continue
		}
		w.limitSet = 0
		next, err := w.run(contract.FDBExpiryQueueInput{Cluster: "west"})
		for err == nil && next != nil {
			next, err = w.run(*next)
		}
		w.env = nil
		if err != nil && !temporal.IsCanceledError(err) {
			return err
		}
	}
	return nil
}

// run runs the queue once from now on, and returns how it goes on.
func (w *queueWorld) run(in contract.FDBExpiryQueueInput) (*contract.FDBExpiryQueueInput, error) {
	if w.runs++; w.runs > 300 {
		return nil, errors.New("the queue continues as new without end")
	}
	from := w.now
	env := w.newEnv()
	env.SetStartTime(w.start.Add(from))
	first := w.send
	w.send = nil
	if len(first) > 0 {
		env.RegisterDelayedCallback(func() { signalQueue(env, first) }, 0)
	}
	for _, step := range w.steps {
		env.RegisterDelayedCallback(func() { w.step(env, step) }, step.at-from)
	}
	env.ExecuteWorkflow(contract.KindFDBExpiryQueue.Workflow, in)
	w.now = env.Now().Sub(w.start)
	err := env.GetWorkflowError()
	var again *workflow.ContinueAsNewError
	if errors.As(err, &again) {
		var next contract.FDBExpiryQueueInput
		return &next, workflowtest.Decode(again, &next)
	}
	return nil, err
}

func (w *queueWorld) newEnv() *testsuite.TestWorkflowEnvironment {
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := environment.New(suite)
	workflows.Register(env, w.options)
	env.RegisterActivityWithOptions(w.describe, activity.RegisterOptions{Name: contract.DescribeWorkflows.Name})
	env.RegisterActivityWithOptions(w.find, activity.RegisterOptions{Name: contract.FindFDBExpiries.Name})
	env.RegisterActivityWithOptions(w.begin, activity.RegisterOptions{Name: contract.StartFDBExpiry.Name})
	w.env = env
	return env
}

func signalQueue(env *testsuite.TestWorkflowEnvironment, signals []any) {
	for _, signal := range signals {
		name := contract.SignalExpiryEntry
		if _, report := signal.(contract.FDBTurnReport); report {
			name = contract.SignalExpiryTurn
		}
		env.SignalWorkflow(name, signal)
	}
}

func (w *queueWorld) step(env *testsuite.TestWorkflowEnvironment, step queueStep) {
	if env.IsWorkflowCompleted() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.steps = w.steps[1:]
	step.do(w)
	signals := w.send
	w.send = nil
	signalQueue(env, signals)
	if w.roll {
		env.SetContinueAsNewSuggested(true)
	}
	if w.lose {
		env.CancelWorkflow()
	}
	w.roll, w.lose = false, false
}

func (w *queueWorld) since() time.Duration {
	if w.env == nil {
		return w.now
	}
	return w.env.Now().Sub(w.start)
}

func (w *queueWorld) fault(format string, args ...any) {
	w.wrong = append(w.wrong, fmt.Sprintf("%s: ", w.since())+fmt.Sprintf(format, args...))
}

// limit returns the limit that the queue has to keep now.
func (w *queueWorld) limit() int { return cmp.Or(w.limitSet, w.options.FDBExpiryLimit) }

// counted returns the pods that count against the limit.
func (w *queueWorld) counted() int {
	count := 0
	for _, pod := range w.pods {
		if !pod.terminating {
			count++
		}
	}
	return count
}

// begin is contract.StartFDBExpiry: the workflow that it starts creates its pod at once, or finds it.
func (w *queueWorld) begin(ctx context.Context, in contract.FDBExpiryInput) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := queueTurn{in.Ref, in.Turn}
	call := fmt.Sprintf("%d/%s", w.runs, activity.GetInfo(ctx).ActivityID)
	if _, repeated := w.called[call]; !repeated {
		w.called[call] = w.since()
	}
	if at, closed := w.closedAt[key]; closed && at >= w.called[call] {
		return nil // it ran when this was called
	}
	pod, exists := w.pods[in.Ref]
	if exists && pod.turn != in.Turn {
		w.fault("%s gets turn %d beside a pod of turn %d", in.Ref, in.Turn, pod.turn)
	}
	if w.ended[key] {
		w.fault("%s gets turn %d again, which had reported its end", in.Ref, in.Turn)
	}
	if flow, runs := w.flows[in.Ref]; runs && flow.turn != in.Turn {
		w.fault("%s gets turn %d while turn %d runs", in.Ref, in.Turn, flow.turn)
	}
	if !w.seen[key] && !exists && w.counted() >= w.limit() {
		w.fault("%s gets a turn beside %d, and the limit is %d", in.Ref, w.counted(), w.limit())
	}
	again := ""
	if w.seen[key] {
		again = " again"
	}
	w.seen[key] = true
	if w.refused > 0 {
		w.refused--
		return errors.New("away")
	}
	if in.Ref.Name == w.never {
		w.order = append(w.order, fmt.Sprintf("%d never %s", int(w.since()/time.Second), in.Ref.Name))
		return temporal.NewNonRetryableApplicationError("too long", "InvalidArgument", nil)
	}
	if _, runs := w.flows[in.Ref]; !runs {
		if !exists {
			pod = queuePod{turn: in.Turn, job: in.Job}
			w.pods[in.Ref] = pod
		}
		w.flows[in.Ref] = pod
		w.begun[in.Ref] = append(w.begun[in.Ref], w.since())
		w.order = append(w.order, fmt.Sprintf("%d %s %s%s", int(w.since()/time.Second), in.Job, in.Ref.Name, again))
	}
	if w.lost > 0 {
		w.lost--
		return errors.New("the answer was lost")
	}
	return nil
}

func (w *queueWorld) describe(_ context.Context, in contract.Workflows) (contract.Workflows, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	runs := map[string]bool{}
	for ref := range w.flows {
		runs[contract.WorkflowID("west", contract.KindFDBExpiry, ref)] = true
	}
	var closed contract.Workflows
	for _, id := range in.WorkflowIDs {
		if !runs[id] {
			closed.WorkflowIDs = append(closed.WorkflowIDs, id)
		}
	}
	return closed, w.away
}

func (w *queueWorld) find(context.Context, contract.FDBExpiryQueueInput) (contract.FDBExpiriesFound, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var found contract.FDBExpiriesFound
	for _, name := range slices.Sorted(maps.Keys(w.objects)) {
		object := w.objects[name]
		object.out = false
		entry := contract.FDBQueueEntry{Ref: object.ref, Job: object.job}
		for turn := range w.ended { // what the status shows
			if turn.ref == object.ref {
				entry.Last = max(entry.Last, turn.turn)
			}
		}
		found.Entries = append(found.Entries, entry)
	}
	for _, ref := range sortedRefs(w.pods) {
		pod := w.pods[ref]
		w.seen[queueTurn{ref, pod.turn}] = true
		found.Turns = append(found.Turns, contract.FDBTurn{Ref: ref, Job: pod.job, Turn: pod.turn, Closing: pod.terminating})
	}
	return found, nil
}
