package workflows

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
)

const (
	// defaultFDBSnapshotLimit is --fdb-initial-snapshot-limit unless the worker says otherwise.
	defaultFDBSnapshotLimit = 1
	// fdbLimitEffect names the side effect by which the limit in force enters the history.
	fdbLimitEffect = "fdb-snapshot-limit"
	// maxShownFDBBackups limits how many backups the details list.
	maxShownFDBBackups = 50
)

// FDBSnapshotThrottle lets the FoundationDBBackups of a Kubernetes cluster start their first snapshots a few at a time. Turns go
// round the namespaces, and within one they come in the order of asking. A backup has its slot until it says otherwise, or its
// workflow is gone and nothing that it asked for can run any more. The throttle ends when nobody has or wants a slot; the next
// one to ask starts it again.
func FDBSnapshotThrottle(ctx workflow.Context, in contract.FDBThrottleInput, options Options) error {
	run := &fdbThrottleRun{
		cluster: in.Cluster, options: options,
		slots:    fdbSlots{holders: in.Holders, waiting: in.Waiting, rounds: fdbRoundsOf(ctx, in.Namespaces)},
		requests: workflow.GetSignalChannel(ctx, contract.SignalSlot),
	}
	err := workflow.SetQueryHandler(ctx, contract.QueryState, func() (contract.FDBThrottleState, error) {
		return contract.FDBThrottleState{Limit: run.limit, Holders: run.slots.holders, Waiting: run.slots.order()}, nil
	})
	if err != nil {
		return err
	}
	if !in.Found {
		if err := run.find(ctx); err != nil {
			return err
		}
	}
	return run.serve(ctx)
}

// find counts those that are in their first snapshot already: the throttle has just begun, or Temporal has lost it.
func (r *fdbThrottleRun) find(ctx workflow.Context) error {
	found, err := call.LocalFirst(ctx, r.options.Limits, contract.FindFirstSnapshots, contract.FDBThrottleInput{Cluster: r.cluster})
	if err != nil {
		return err
	}
	for _, id := range found.WorkflowIDs {
		r.slots.take(contract.FDBWishCount, contract.FDBHolder{WorkflowID: id, Since: workflow.Now(ctx).Unix()})
		r.slots.again = append(r.slots.again, id) // it is told, and says so if it needs none
	}
	return nil
}

// fdbThrottleRun is the state of one run. Nothing in it outlives the run but what FDBThrottleInput carries over.
type fdbThrottleRun struct {
	cluster  string
	options  Options
	slots    fdbSlots
	requests workflow.ReceiveChannel
	census   fdbCensus
	limit    int
}

func (r *fdbThrottleRun) serve(ctx workflow.Context) error {
	for {
		r.receive(ctx)
		r.count(ctx)
		if err := r.grant(ctx); err != nil {
			return err
		}
		workflow.SetCurrentDetails(ctx, r.details())
		more := func() bool { return r.requests.Len() > 0 || r.census.ready() }
		// From here to the return nothing may yield: a request that came meanwhile would be lost.
		if !more() && !r.census.busy() {
			if len(r.slots.holders)+len(r.slots.waiting) == 0 {
				return nil
			}
			if workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
				return workflow.NewContinueAsNewError(ctx, contract.KindFDBThrottle.Workflow, contract.FDBThrottleInput{
					Cluster: r.cluster, Found: true, Holders: r.slots.holders, Waiting: r.slots.waiting,
					Namespaces: r.slots.rounds.among(r.slots.lines()),
				})
			}
		}
		if err := workflow.Await(ctx, more); err != nil {
			return err
		}
	}
}

// receive notes all that was asked, in its order.
func (r *fdbThrottleRun) receive(ctx workflow.Context) {
	for r.requests.Len() > 0 {
		var request contract.FDBSlotRequest
		if !r.requests.ReceiveAsync(&request) { // passes over what is not readable
			continue
		}
		switch request.Wish {
		case contract.FDBWishSlot, contract.FDBWishCount, contract.FDBWishRelease:
		default:
			workflow.GetLogger(ctx).Warn("unknown wish, ignored", "wish", request.Wish, "sender", request.WorkflowID)
			continue
		}
		if request.WorkflowID == "" || request.Cluster != r.cluster {
			workflow.GetLogger(ctx).Warn("request of nobody here, ignored", "cluster", request.Cluster, "sender", request.WorkflowID)
			continue
		}
		r.census.hear(request.WorkflowID)
		r.slots.take(request.Wish, contract.FDBHolder{
			WorkflowID: request.WorkflowID, Namespace: request.Namespace, Since: workflow.Now(ctx).Unix(),
		})
	}
}

// count notes whose workflow runs and whose does not.
func (r *fdbThrottleRun) count(ctx workflow.Context) {
	ids := r.slots.everybody()
	if workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
		ids = nil // the next run looks
	}
	found := r.census.advance(ctx, fdbCensusInterval, ids)
	for _, id := range found.running {
		r.slots.running(id)
	}
	for _, id := range found.closed {
		r.slots.closed(id, workflow.Now(ctx).Unix())
	}
}

// grant tells those that have a slot and asked again, and gives the free slots to those that are next.
func (r *fdbThrottleRun) grant(ctx workflow.Context) error {
	again := r.slots.again
	r.slots.again = nil
	for _, id := range again {
		closed, err := r.tell(ctx, id)
		switch {
		case temporal.IsCanceledError(err):
			return err
		case closed:
			r.slots.closed(id, workflow.Now(ctx).Unix())
		}
	}
	r.limit = r.limitNow(ctx)
	for range r.slots.waiting { // each at most once
		next, granted := r.slots.grant(r.limit, workflow.Now(ctx).Unix())
		if !granted {
			return nil
		}
		closed, err := r.tell(ctx, next.WorkflowID)
		switch {
		case temporal.IsCanceledError(err):
			return err
		case closed:
			r.slots.remove(next.WorkflowID) // it never had a slot, so it has started nothing
		case err != nil:
			r.slots.requeue(next, workflow.Now(ctx).Unix())
		}
	}
	return nil
}

// tell tells a backup that it has a slot; closed is true if its workflow does not run.
func (r *fdbThrottleRun) tell(ctx workflow.Context, id string) (closed bool, err error) {
	err = workflow.SignalExternalWorkflow(ctx, id, "", contract.SignalSlotGranted, contract.FDBSlotGrant{}).Get(ctx, nil)
	var unknown *temporal.UnknownExternalWorkflowExecutionError
	if errors.As(err, &unknown) {
		return true, nil
	}
	if err != nil && !temporal.IsCanceledError(err) {
		workflow.GetLogger(ctx).Warn("backup not told of its slot", "backup", id, "error", err)
	}
	return false, err
}

// limitNow is the limit that this worker was started with. It goes through the history, so that a worker with another one can
// take over.
func (r *fdbThrottleRun) limitNow(ctx workflow.Context) int {
	limit := defaultFDBSnapshotLimit
	err := workflow.MutableSideEffect(ctx, fdbLimitEffect, func(workflow.Context) any {
		if r.options.FDBSnapshotLimit > 0 {
			return r.options.FDBSnapshotLimit
		}
		return defaultFDBSnapshotLimit
	}, func(a, b any) bool { return a == b }).Get(&limit)
	if err != nil {
		workflow.GetLogger(ctx).Error("limit in the history not readable, the default holds", "error", err)
	}
	return limit
}

// details says in Markdown who has a slot and who waits.
func (r *fdbThrottleRun) details() string {
	text := ""
	text += fmt.Sprintf("**First snapshots:** %d of at most %d at a time; %d wait.\n",
		len(r.slots.holders), r.limit, len(r.slots.waiting))
	list := func(heading string, holders []contract.FDBHolder) {
		if len(holders) == 0 {
			return
		}
		text += fmt.Sprintf("\n%s\n\n", heading)
		for i, holder := range holders {
			if i == maxShownFDBBackups {
				text += fmt.Sprintf("- and %d more\n", len(holders)-i)
				break
			}
			text += fmt.Sprintf("- `%s` since %s", oneLine(holder.WorkflowID), stamp(holder.Since))
			if holder.ClosedSince != 0 {
				text += fmt.Sprintf("; its workflow does not run since %s: the slot is kept until %s, as a start may be on its way",
					stamp(holder.ClosedSince), stamp(holder.ClosedSince+int64(contract.FDBSlotGrace/time.Second)))
			}
			text += "\n"
		}
	}
	list("Have a slot:", r.slots.holders)
	list("Wait, in this order:", r.slots.order())
	return text
}

func stamp(seconds int64) string { return time.Unix(seconds, 0).UTC().Format(time.RFC3339) }
