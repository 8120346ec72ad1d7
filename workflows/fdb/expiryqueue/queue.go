package expiryqueue

import (
	"cmp"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/fdb/throttle"
	"holdfast.dev/holdfast/workflows/kinds"
	"holdfast.dev/holdfast/workflows/turns"
)

const (
	// defaultFDBExpiryLimit is --fdb-expiry-concurrency unless the worker says otherwise.
	defaultFDBExpiryLimit = 1
	// defaultFDBExpiryRetryInterval is --fdb-expiry-retry-interval unless the worker says otherwise.
	defaultFDBExpiryRetryInterval = 10 * time.Minute
	// defaultFDBExpiryMinInterval is --fdb-expiry-min-interval unless the worker says otherwise.
	defaultFDBExpiryMinInterval = time.Hour
	// maxFDBExpiryLimit is the highest limit that UpdateSetExpiryLimit accepts.
	maxFDBExpiryLimit = 100
	// fdbPaceEffect names the side effect by which limit and intervals enter the history.
	fdbPaceEffect = "fdb-expiry-pace"
)

// Kind is how the workflow is run.
var Kind = kinds.Kind{
	Kind:       contract.KindFDBExpiryQueue,
	Activities: contract.Names(contract.SignalFDBExpiryQueue, contract.StartFDBExpiry, contract.FindFDBExpiries),
	Run:        kinds.Serving(Workflow),
}

// Workflow lets the FoundationDBBackups of a Kubernetes cluster expire, or delete, their data a few at a time. Turns go round the
// namespaces; within one the first in the queue has its turn, and goes to the end. A turn is a workflow of its own, which reports
// how far it is; one that was lost is started again and finds its pod. The queue ends when no backup wants a turn and none runs;
// the next request starts it again.
func Workflow(ctx workflow.Context, in contract.FDBExpiryQueueInput, options call.Options) error {
	run := &queueRun{
		cluster: in.Cluster, options: options, limit: in.Limit,
		requests: workflow.GetSignalChannel(ctx, contract.SignalExpiryEntry),
		reports:  workflow.GetSignalChannel(ctx, contract.SignalExpiryTurn),
	}
	run.Resume(in.Carried)
	run.Most = []int{contract.LaneDelete: contract.MaxDeletions, contract.LaneExpire: contract.MaxCarried}
	run.Members, run.Turns = turns.Each(in.Entries, fdbMemberOf), turns.Each(in.Turns, fdbTurnOf)
	run.Coordinator = turns.Coordinator[contract.ObjectRef]{
		User: run, Queues: []*turns.Queue[contract.ObjectRef]{&run.Queue}, Found: in.Found,
		Grace: int64(turns.CensusInterval / time.Second),
	}
	run.Pace(ctx)
	if err := run.handle(ctx); err != nil {
		return err
	}
	return run.Serve(ctx)
}

// queueRun is the state of one run.
type queueRun struct {
	turns.Coordinator[contract.ObjectRef]
	turnStates
	cluster  string
	options  call.Options
	limit    int // what UpdateSetExpiryLimit has set; 0 if the flag counts
	wishes   []*wish
	requests workflow.ReceiveChannel
	reports  workflow.ReceiveChannel
}

// Find lists the objects, those that operators have named included, and, at the start, the pods: turns whose pods exist are
// started again, so that each finds its pod.
func (r *queueRun) Find(ctx workflow.Context) error {
	wishes := r.wishes
	r.wishes = nil
	request := contract.FDBExpiryQueueInput{
		Cluster: r.cluster, Named: turns.Each(wishes, func(wish *wish) contract.FDBQueueName { return wish.name }),
	}
	request.Carried.Lanes = turns.Each(r.Carry(workflow.Now(ctx).Unix()).Lanes, func(lane contract.Lane) contract.Lane {
		return contract.Lane{Namespaces: lane.Namespaces}
	})
	found, err := call.LocalFirstWithin(ctx, r.options.Limits, throttle.FDBFindLimit, contract.FindFDBExpiries, request)
	if err != nil {
		return err
	}
	now := workflow.Now(ctx).Unix()
	r.refill(found, wishes, now)
	if r.Found {
		return nil
	}
	for _, turn := range found.Turns {
		turn.Closing = false // its workflow, started again, may create another pod; if it does not, it reports that
		r.Hold(fdbTurnOf(turn))
	}
	for _, turn := range r.Turns {
		r.Again(turn.Key)
	}
	return nil
}

// Receive drains the reports and the requests, each in their order.
func (r *queueRun) Receive(ctx workflow.Context) {
	for r.reports.Len() > 0 {
		var report contract.FDBTurnReport
		if !r.reports.ReceiveAsync(&report) { // skips what cannot be decoded
			continue
		}
		r.NoteMessage(report.Ref)
		r.report(report, workflow.Now(ctx).Unix())
	}
	for r.requests.Len() > 0 {
		var request contract.FDBQueueRequest
		if !r.requests.ReceiveAsync(&request) {
			continue
		}
		ref := request.Ref
		if request.Cluster != r.cluster || ref.Namespace == "" || ref.Name == "" || ref.UID == "" {
			workflow.GetLogger(ctx).Warn("request from elsewhere, ignored", "cluster", request.Cluster, "backup", ref.String())
			continue
		}
		switch request.Job {
		case contract.FDBJobNone, contract.FDBJobExpire, contract.FDBJobDelete:
			r.request(ref, request.Job, workflow.Now(ctx).Unix())
		default:
			workflow.GetLogger(ctx).Warn("unknown job, ignored", "job", request.Job, "backup", ref.String())
		}
	}
}

// Pending reports whether there is a request or a report.
func (r *queueRun) Pending() bool { return r.requests.Len() > 0 || r.reports.Len() > 0 }

// Give starts the workflow of a turn, however long that takes. A turn that can never be started ends. The activity is no local
// one: those run again after a kill, when it is later, and the turn would have another number than its workflow.
func (r *queueRun) Give(
	ctx workflow.Context, _ *turns.Queue[contract.ObjectRef], turn turns.Turn[contract.ObjectRef], _ bool,
) error {
	job := contract.FDBJob(turn.Job)
	start := contract.StartFDBExpiry.WithSummary(fdbTurnSummary(job, turn.Key))
	_, err := call.Recorded(ctx, r.options.Limits, start, contract.FDBExpiryInput{
		Cluster: r.cluster, Ref: turn.Key, Job: job, Turn: turn.Began,
	})
	if temporal.IsCanceledError(err) {
		return err
	}
	if err != nil { // Temporal will never accept the start
		workflow.GetLogger(ctx).Error("turn not started, and given up", "backup", turn.Key.String(), "error", err)
		r.report(contract.FDBTurnReport{
			Ref: turn.Key, Turn: turn.Began, Ended: true, Outcome: contract.FDBTurnFailed,
		}, workflow.Now(ctx).Unix())
	}
	return nil
}

// Deliver has nothing to do: Give begins each turn itself.
func (r *queueRun) Deliver(workflow.Context) error { return nil }

func fdbTurnSummary(job contract.FDBJob, ref contract.ObjectRef) string {
	if job == contract.FDBJobDelete {
		return "Delete the data of " + ref.String()
	}
	return "Expire " + ref.String()
}

// Lost starts a turn again.
func (r *queueRun) Lost(_ *turns.Queue[contract.ObjectRef], ref contract.ObjectRef) {
	r.Revive(ref)
}

// WorkflowID returns the turn's, not the backup's.
func (r *queueRun) WorkflowID(ref contract.ObjectRef) string {
	return contract.WorkflowID(r.cluster, contract.KindFDBExpiry, ref)
}

// Next hands everything over to the next run.
func (r *queueRun) Next(ctx workflow.Context) error {
	return workflow.NewContinueAsNewError(ctx, contract.KindFDBExpiryQueue.Workflow, contract.FDBExpiryQueueInput{
		Cluster: r.cluster, Found: r.Found, Entries: turns.Each(r.Members, fdbEntryOf), Turns: r.running(), Limit: r.limit,
		Carried: r.Carry(workflow.Now(ctx).Unix()),
	})
}

// Pace sets what this worker was started with, and the limit that an operator has set.
func (r *queueRun) Pace(ctx workflow.Context) {
	seconds := func(flag, fallback time.Duration) int64 {
		return max(1, int64(cmp.Or(max(0, flag), fallback)/time.Second))
	}
	present := pace{
		Limit: cmp.Or(max(0, r.options.FDBExpiryLimit), defaultFDBExpiryLimit),
		Retry: seconds(r.options.FDBExpiryRetryInterval, defaultFDBExpiryRetryInterval),
		Min:   seconds(r.options.FDBExpiryMinInterval, defaultFDBExpiryMinInterval),
	}
	fallback := pace{
		Limit: defaultFDBExpiryLimit, Retry: seconds(0, defaultFDBExpiryRetryInterval), Min: seconds(0, defaultFDBExpiryMinInterval),
	}
	pace := call.Flag(ctx, fdbPaceEffect, present, fallback)
	if r.limit > 0 {
		pace.Limit = r.limit
	}
	r.at(pace)
	r.Interval = pace.Retry
}
