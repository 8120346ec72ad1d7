package workflows

import (
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
)

const (
	// defaultFDBExpiryLimit is --fdb-expiry-concurrency unless the worker says otherwise.
	defaultFDBExpiryLimit = 1
	// defaultFDBExpiryRetryInterval is --fdb-expiry-retry-interval unless the worker says otherwise.
	defaultFDBExpiryRetryInterval = 10 * time.Minute
	// defaultFDBExpiryMinInterval is --fdb-expiry-min-interval unless the worker says otherwise.
	defaultFDBExpiryMinInterval = time.Hour
	// maxFDBExpiryLimit is the highest that UpdateSetExpiryLimit takes.
	maxFDBExpiryLimit = 100
	// fdbPaceEffect names the side effect by which limit and intervals enter the history.
	fdbPaceEffect = "fdb-expiry-pace"
)

// FDBExpiryQueue lets the FoundationDBBackups of a Kubernetes cluster expire, or delete, their data a few at a time. Turns go
// round the namespaces; within one the first in the queue has its turn, and goes to the end. A turn is a workflow of its own,
// which tells how far it is; one that was lost is started again and finds its pod. The queue ends when nobody wants a turn and
// none runs; who asks next starts it again.
func FDBExpiryQueue(ctx workflow.Context, in contract.FDBExpiryQueueInput, options Options) error {
	run := &fdbExpiryQueueRun{
		cluster: in.Cluster, options: options, limit: in.Limit, found: in.Found,
		fdbTurns: fdbTurns{entries: in.Entries, turns: in.Turns, rounds: fdbRoundsOf(ctx, in.Namespaces)},
		requests: workflow.GetSignalChannel(ctx, contract.SignalExpiryEntry),
		reports:  workflow.GetSignalChannel(ctx, contract.SignalExpiryTurn),
	}
	run.pace = run.paceNow(ctx)
	if err := run.handle(ctx); err != nil {
		return err
	}
	if !run.found {
		if err := run.find(ctx); err != nil {
			return err
		}
	}
	return run.serve(ctx)
}

// fdbExpiryQueueRun is the state of one run. Nothing in it outlives the run but what FDBExpiryQueueInput carries over.
type fdbExpiryQueueRun struct {
	fdbTurns
	cluster  string
	options  Options
	limit    int // what UpdateSetExpiryLimit has set; 0 if the flag holds
	pace     fdbPace
	requests workflow.ReceiveChannel
	reports  workflow.ReceiveChannel
	found    bool // what objects and pods tell is known
	touched  bool // an Update has changed something

	census fdbCensus
	lookAt int64 // when it is looked whose workflow runs; 0 if no look is planned
	timer  workflow.Future
	timed  int64 // when timer fires
	cancel workflow.CancelFunc
}

// find takes what objects and pods tell: the queue has just begun, or Temporal has lost it. Turns whose pods exist are started
// again, so that each finds its pod.
func (r *fdbExpiryQueueRun) find(ctx workflow.Context) error {
	found, err := call.LocalFirst(ctx, r.options.Limits, contract.FindFDBExpiries, contract.FDBExpiryQueueInput{Cluster: r.cluster})
	if err != nil {
		return err
	}
	for _, entry := range found.Entries {
		if entry.Job == contract.FDBJobNone || r.entry(entry.Ref) >= 0 {
			continue
		}
		if entry.Job == contract.FDBJobExpire && entry.Last > 0 {
			entry.NotBefore = min(entry.Last, workflow.Now(ctx).Unix()) + r.pace.rest(entry.Job)
		}
		r.entries = append(r.entries, entry)
	}
	r.rounds.know(r.lines())
	for _, turn := range found.Turns {
		turn.Closing = false // its workflow, started again, may make another pod; it says itself when it does not
		r.adopt(turn, r.pace)
	}
	r.found = true
	return r.startAgain(ctx, slices.Clone(r.turns))
}

// startAgain starts turns that are known already, but for those whose end comes in meanwhile.
func (r *fdbExpiryQueueRun) startAgain(ctx workflow.Context, turns []contract.FDBTurn) error {
	for _, turn := range turns {
		r.receive(ctx)
		if at := r.turn(turn.Ref); at < 0 || r.turns[at].Turn != turn.Turn {
			continue
		}
		if err := r.start(ctx, turn); err != nil {
			return err
		}
	}
	return nil
}

func (r *fdbExpiryQueueRun) serve(ctx workflow.Context) error {
	for {
		r.touched = false
		r.receive(ctx)
		if err := r.look(ctx); err != nil {
			return err
		}
		if err := r.grant(ctx); err != nil {
			return err
		}
		r.sleep(ctx)
		workflow.SetCurrentDetails(ctx, r.details(workflow.Now(ctx).Unix()))
		// From here to the return nothing may yield: a request that came meanwhile would be lost.
		if !r.due() && r.atRest(ctx) {
			switch {
			case r.deserted():
				return nil
			case workflow.GetInfo(ctx).GetContinueAsNewSuggested():
				return workflow.NewContinueAsNewError(ctx, contract.KindFDBExpiryQueue.Workflow, contract.FDBExpiryQueueInput{
					Cluster: r.cluster, Found: true, Entries: r.entries, Turns: r.turns, Limit: r.limit,
					Namespaces: r.rounds.among(r.lines()),
				})
			}
		}
		err := workflow.Await(ctx, func() bool {
			ends := r.deserted() || workflow.GetInfo(ctx).GetContinueAsNewSuggested()
			return r.due() || (ends && r.atRest(ctx))
		})
		if err != nil {
			return err
		}
	}
}

// due reports whether serve has something to do.
func (r *fdbExpiryQueueRun) due() bool {
	return r.touched || r.requests.Len() > 0 || r.reports.Len() > 0 || r.census.ready() || (r.timer != nil && r.timer.IsReady())
}

// atRest: nobody waits for anything of this run.
func (r *fdbExpiryQueueRun) atRest(ctx workflow.Context) bool {
	return workflow.AllHandlersFinished(ctx) && !r.census.busy()
}

// receive notes all that was asked and told, each in its order.
func (r *fdbExpiryQueueRun) receive(ctx workflow.Context) {
	for r.reports.Len() > 0 {
		var report contract.FDBTurnReport
		if !r.reports.ReceiveAsync(&report) { // passes over what is not readable
			continue
		}
		r.census.hear(r.turnID(report.Ref))
		r.report(report, workflow.Now(ctx).Unix(), r.pace)
	}
	for r.requests.Len() > 0 {
		var request contract.FDBQueueRequest
		if !r.requests.ReceiveAsync(&request) {
			continue
		}
		ref := request.Ref
		if request.Cluster != r.cluster || ref.Namespace == "" || ref.Name == "" || ref.UID == "" {
			workflow.GetLogger(ctx).Warn("request of nobody here, ignored", "cluster", request.Cluster, "backup", ref.String())
			continue
		}
		switch request.Job {
		case contract.FDBJobNone, contract.FDBJobExpire, contract.FDBJobDelete:
			r.take(ref, request.Job)
		default:
			workflow.GetLogger(ctx).Warn("unknown job, ignored", "job", request.Job, "backup", ref.String())
		}
	}
}

// look finds out now and then whether the workflows of the turns run, and starts those again that have ended without a word.
func (r *fdbExpiryQueueRun) look(ctx workflow.Context) error {
	now := workflow.Now(ctx).Unix()
	var lost []contract.FDBTurn
	if r.census.ready() {
		found := r.census.advance(ctx, 0, nil) // with nobody to look after it plans nothing: lookAt does
		r.note(found, now, &lost)
	}
	// If the run is about to end, the next one looks.
	if r.lookAt != 0 && r.lookAt <= now && !r.census.busy() && !workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
		var ids []string
		for _, turn := range r.turns {
			ids = append(ids, r.turnID(turn.Ref))
		}
		if len(ids) > 0 {
			r.census.ask(ctx, ids)
		}
		r.lookAt = 0
	}
	return r.startAgain(ctx, lost)
}

// planLook says when it is looked next: after the retry interval, and sooner if a workflow was found not to run.
func (r *fdbExpiryQueueRun) planLook(now int64) {
	interval := r.pace.Retry
	if r.doubtful() {
		interval = min(interval, int64(fdbCensusInterval/time.Second))
	}
	switch {
	case len(r.turns) == 0:
		r.lookAt = 0
	case r.lookAt == 0 || r.lookAt > now+interval:
		r.lookAt = now + interval
	}
}

// note takes what a look has found.
func (r *fdbExpiryQueueRun) note(found fdbCounted, now int64, lost *[]contract.FDBTurn) {
	refs := map[string]contract.ObjectRef{}
	for _, turn := range r.turns {
		refs[r.turnID(turn.Ref)] = turn.Ref
	}
	for _, id := range found.running {
		r.runs(refs[id])
	}
	for _, id := range found.closed {
		if turn, again := r.closed(refs[id], now, r.pace); again {
			*lost = append(*lost, turn)
		}
	}
}

// grant begins turns as long as the limit and the queue allow it. What comes while a turn is started counts for the next.
func (r *fdbExpiryQueueRun) grant(ctx workflow.Context) error {
	for {
		r.pace = r.paceNow(ctx)
		turn, begun := r.begin(workflow.Now(ctx).Unix(), r.pace)
		if !begun {
			return nil
		}
		if err := r.start(ctx, turn); err != nil {
			return err
		}
		r.receive(ctx)
	}
}

// start starts the workflow of a turn, for as long as that takes. One that can never be started gives its place back. It is no
// local activity: those run again after a kill, when it is later, and the turn would have another number than its workflow.
func (r *fdbExpiryQueueRun) start(ctx workflow.Context, turn contract.FDBTurn) error {
	r.census.hear(r.turnID(turn.Ref)) // what a look says of it is older
	begin := contract.StartFDBExpiry.WithSummary(fdbTurnSummary(turn))
	_, err := call.Recorded(ctx, r.options.Limits, begin, contract.FDBExpiryInput{
		Cluster: r.cluster, Ref: turn.Ref, Job: turn.Job, Turn: turn.Turn,
	})
	if temporal.IsCanceledError(err) {
		return err
	}
	if err != nil { // Temporal never takes it
		workflow.GetLogger(ctx).Error("turn not started, and given up", "backup", turn.Ref.String(), "error", err)
		r.report(contract.FDBTurnReport{
			Ref: turn.Ref, Turn: turn.Turn, Ended: true, Outcome: contract.FDBTurnFailed,
		}, workflow.Now(ctx).Unix(), r.pace)
	}
	return nil
}

// sleep has the run wake when the next turn is due, or it is time to look whose workflow runs: one timer for all, left as it is
// if it fires earlier.
func (r *fdbExpiryQueueRun) sleep(ctx workflow.Context) {
	if r.timer != nil && r.timer.IsReady() {
		r.timer = nil
	}
	r.planLook(workflow.Now(ctx).Unix())
	at := r.next(r.pace.Limit)
	if at == 0 || (r.lookAt != 0 && r.lookAt < at) {
		at = r.lookAt
	}
	if at == 0 || (r.timer != nil && r.timed <= at) {
		return
	}
	if r.timer != nil {
		r.cancel()
	}
	var timing workflow.Context
	timing, r.cancel = workflow.WithCancel(ctx)
	wait := max(time.Unix(at, 0).Sub(workflow.Now(ctx)), time.Second)
	r.timer, r.timed = workflow.NewTimer(timing, wait), at
}
