package queue_test

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"math/rand"
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

// object is a NonAdminBackup or a NonAdminRestore, its workflow, and the Velero object made for it.
type object struct {
	key     contract.TurnKey
	lane    int
	created int64
	made    int64 // when its Velero object was made
	gone    bool
	orphan  bool // it is gone, and Velero goes on
	// waits: it has no Velero object. making: its workflow has found its turn usable. active: its Velero object is unfinished.
	waits, making, active bool
	// apart: its Velero object was made without a turn, or its turn was given back at a stall.
	apart, stalled bool
	turn           contract.Turn // as its workflow knows
	last           int64         // the highest number that it was given
	flow           bool          // its workflow runs
	flows          int           // how many were terminated
	had            int           // how often it was given a turn by another number
}

// step is an event at a time after the start.
type step struct {
	at time.Duration
	do func()
}

// world runs a queue, over as many runs as needed, among objects, their workflows, and a watcher.
type world struct {
	mu      sync.Mutex
	start   time.Time
	rules   contract.TurnRules
	version int
	objects []*object
	chance  *rand.Rand
	// slow: makes take up to 10 s after the check, and signals up to 40 s. lossy: news of ends are lost now and then.
	slow, lossy bool
	// takes is how long Velero takes at least, in seconds, and vary how much longer at most. hold: it does not finish by itself.
	takes, vary int
	hold        bool
	// refused calls of GiveTurns fail before, lost ones after their effect. never is a name that Temporal does not accept.
	refused, lost int
	never         string
	// atTurn is done to the first object that is given a turn, before its workflow hears of it.
	atTurn        func(*object)
	away          error // of the API server
	stale         *contract.TurnsFound
	found, counts int
	bounds        map[contract.Pool][]bound
	over          map[contract.Pool]contract.LimitOverride
	given         []string // "seconds name", "again" if it was given before
	// updated counts the updates that were sent, answers are what came of them.
	updated int
	answers []string // of Updates
	began   []string // of runs: "seconds" and how they began
	wrong   []string
	trace   []string

	send      []any
	steps     []*step
	roll, end bool
	runs      int
	env       *testsuite.TestWorkflowEnvironment // nil if it does not run
	now       time.Duration
	wakes     time.Duration             // when the next step is done; never if none is due
	last      contract.VeleroQueueInput // by which the last run began
}

const never = time.Duration(math.MaxInt64)

// bound is a limit that is in force from then on.
type bound struct {
	from  time.Duration
	limit int
}

func newWorld(backups, restores int) *world {
	w := &world{
		start: time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC), chance: rand.New(rand.NewSource(1)), takes: 10, hold: true,
		bounds: map[contract.Pool][]bound{}, over: map[contract.Pool]contract.LimitOverride{},
	}
	w.limits(backups, restores)
	return w
}

// limits writes the policy; the watcher sends that. A limit of 0 is none.
func (w *world) limits(backups, restores int) {
	w.version++
	rules := contract.TurnRules{
		Version: fmt.Sprintf("v%d", w.version), Limits: map[contract.Pool]int{}, Weights: w.rules.Weights,
		Timeout: cmp.Or(w.rules.Timeout, int64(4*time.Hour/time.Second)),
	}
	for pool, limit := range map[contract.Pool]int{contract.PoolBackups: backups, contract.PoolRestores: restores} {
		if limit > 0 {
			rules.Limits[pool] = limit
		}
	}
	w.rules = rules
	for _, pool := range contract.Pools() {
		if limit := rules.Limits[pool]; limit > w.limit(pool) {
			w.limited(pool, limit) // the queue may read it at any time from now on
		}
	}
	if len(rules.Limits) > 0 || w.env != nil {
		w.send = append(w.send, contract.TurnNews{Policy: rules.Version})
	}
	for _, o := range w.objects {
		if o.waits && rules.Limits[o.key.Pool] == 0 {
			w.in(time.Duration(1+w.chance.Intn(10))*time.Second, func() { w.makesWithout(o) })
		}
	}
}

func (w *world) play() error {
	for len(w.steps) > 0 || len(w.send) > 0 {
		if len(w.send) == 0 {
			next := w.pop()
			w.now = max(w.now, next.at)
			next.do()
			w.roll, w.end = false, false // there is nothing to continue, or to lose
			continue
		}
		clear(w.over)
		w.notes("the queue begins")
		w.began = append(w.began, fmt.Sprintf("%d", int(w.now/time.Second)))
		next, err := w.run(contract.VeleroQueueInput{Cluster: "west"})
		for err == nil && next != nil {
			w.began = append(w.began, fmt.Sprintf("%d continues", int(w.now/time.Second)))
			next, err = w.run(*next)
		}
		w.env = nil
		if err != nil && !temporal.IsCanceledError(err) {
			return err
		}
	}
	return nil
}

// earliest returns the index of the next step.
func (w *world) earliest() int {
	at := 0
	for i, each := range w.steps {
		if each.at < w.steps[at].at {
			at = i
		}
	}
	return at
}

// pop removes and returns the next step.
func (w *world) pop() *step {
	at := w.earliest()
	next := w.steps[at]
	w.steps = slices.Delete(w.steps, at, at+1)
	return next
}

// run runs the queue once from now on, and returns how it goes on.
func (w *world) run(in contract.VeleroQueueInput) (*contract.VeleroQueueInput, error) {
	if w.runs++; w.runs > 300 {
		return nil, errors.New("the queue continues as new without end")
	}
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := environment.New(suite)
	env.SetTestTimeout(2 * time.Minute)
	workflows.Register(env, call.Options{})
	env.RegisterActivityWithOptions(w.describe, activity.RegisterOptions{Name: contract.DescribeWorkflows.Name})
	env.RegisterActivityWithOptions(w.find, activity.RegisterOptions{Name: contract.FindTurns.Name})
	env.RegisterActivityWithOptions(w.give, activity.RegisterOptions{Name: contract.GiveTurns.Name})
	env.SetStartTime(w.start.Add(w.now))
	w.mu.Lock()
	w.env, w.last = env, in
	first := w.send
	w.send = nil
	if len(first) > 0 {
		env.RegisterDelayedCallback(func() { signal(env, first) }, 0)
	}
	w.wakes = never
	if w.runs > 1 { // nothing happens before the very first listing, which begins no pause then
		w.wake()
	}
	w.mu.Unlock()
	env.ExecuteWorkflow(contract.KindVeleroQueue.Workflow, in)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = max(w.now, env.Now().Sub(w.start))
	err := env.GetWorkflowError()
	var again *workflow.ContinueAsNewError
	if errors.As(err, &again) {
		var next contract.VeleroQueueInput
		return &next, workflowtest.Decode(again, &next)
	}
	return nil, err
}

func signal(env *testsuite.TestWorkflowEnvironment, signals []any) {
	for _, each := range signals {
		name := contract.SignalTurnNews
		if _, back := each.(contract.TurnReturn); back {
			name = contract.SignalTurnReturned
		}
		env.SignalWorkflow(name, each)
	}
}

// in has something done after that time; w is locked.
func (w *world) in(delay time.Duration, do func()) {
	w.steps = append(w.steps, &step{w.since() + delay + workflowtest.Apart, do})
	if w.env != nil && !w.env.IsWorkflowCompleted() {
		w.wake()
	}
}

// wake has the next step done when it is due; w is locked. The steps have one callback: the environment holds a thousand at most.
func (w *world) wake() {
	if len(w.steps) == 0 {
		return
	}
	at := w.steps[w.earliest()].at
	if at >= w.wakes {
		return
	}
	w.wakes = at
	env := w.env
	env.RegisterDelayedCallback(func() {
		if env.IsWorkflowCompleted() {
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.wakes != at { // an earlier step came, and its callback goes on
			return
		}
		for len(w.steps) > 0 && w.steps[w.earliest()].at <= w.since() && !w.does() {
		}
		w.wakes = never
		w.wake()
	}, max(at-w.since(), time.Millisecond))
}

// does does the next step, and reports whether it may end the run.
func (w *world) does() (ends bool) {
	w.pop().do()
	signals := w.send
	w.send = nil
	signal(w.env, signals)
	if w.roll {
		w.env.SetContinueAsNewSuggested(true)
	}
	if w.end {
		w.notes("the queue is lost")
		w.env.CancelWorkflow()
	}
	ends = w.roll || w.end
	w.roll, w.end = false, false
	return ends
}

// at has something done at a time after the start.
func (w *world) at(at time.Duration, do func()) { w.steps = append(w.steps, &step{at, do}) }

func (w *world) since() time.Duration {
	if w.env == nil {
		return w.now
	}
	return w.env.Now().Sub(w.start)
}

func (w *world) unix() int64 { return w.start.Add(w.since()).Unix() }

func (w *world) fault(format string, args ...any) {
	w.notes(format, args...)
	w.wrong = append(w.wrong, w.trace[len(w.trace)-1])
}

// notes notes what has happened, for those who look for the cause of a fault.
func (w *world) notes(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf("%s: ", w.since())+fmt.Sprintf(format, args...))
}

// limited notes a limit that is in force from now on.
func (w *world) limited(pool contract.Pool, limit int) {
	w.notes("limit %d of %s", limit, pool)
	w.bounds[pool] = append(w.bounds[pool], bound{w.since(), limit})
}

// limit returns the limit in force.
func (w *world) limit(pool contract.Pool) int {
	if all := w.bounds[pool]; len(all) > 0 {
		return all[len(all)-1].limit
	}
	return 0
}

// most returns the largest limit in force while a turn could be given by which an object is made now.
func (w *world) most(pool contract.Pool) int {
	const inFlight = contract.TurnUsable + 15*time.Second
	most, from := 0, w.since()-inFlight
	for i, each := range w.bounds[pool] {
		if i+1 == len(w.bounds[pool]) || w.bounds[pool][i+1].from >= from {
			most = max(most, each.limit)
		}
	}
	return most
}

func (w *world) names(are func(*object) bool) []string {
	names := map[string]bool{}
	for _, o := range w.objects {
		if are(o) {
			names[o.key.Name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}
