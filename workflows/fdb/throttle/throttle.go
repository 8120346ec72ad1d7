package throttle

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"k8s.io/utils/ptr"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/details"
	"holdfast.dev/holdfast/workflows/kinds"
	"holdfast.dev/holdfast/workflows/turns"
)

const (
	// defaultFDBSnapshotLimit is --fdb-initial-snapshot-limit unless the worker says otherwise.
	defaultFDBSnapshotLimit = 1
	// fdbLimitEffect names the side effect by which the limit in force enters the history.
	fdbLimitEffect = "fdb-snapshot-limit"
	// fdbSlotRetry is how long, in seconds, a backup waits again after the signal of its grant has failed.
	fdbSlotRetry = 5
	// FDBFindLimit limits an attempt to list all FoundationDBBackups: there may be 50,000.
	FDBFindLimit = time.Minute
)

// Kind is how the workflow is run.
var Kind = kinds.Kind{
	Kind:       contract.KindFDBThrottle,
	Activities: contract.Names(contract.SignalFDBThrottle, contract.FindFirstSnapshots),
	Run:        kinds.Serving(Workflow),
}

// Workflow lets the FoundationDBBackups of a Kubernetes cluster start their first snapshots a few at a time. Turns go round the
// namespaces, and within one they come in the order of the requests. A backup has its slot until it releases it, or until its
// workflow is gone and no command that it requested can run any more. The throttle ends when no backup has or wants a slot; the
// next request starts it again.
func Workflow(ctx workflow.Context, in contract.FDBThrottleInput, options call.Options) error {
	run := &throttleRun{
		cluster: in.Cluster, options: options,
		slots:    turns.Queue[string]{Most: []int{contract.MaxCarried}},
		requests: workflow.GetSignalChannel(ctx, contract.SignalSlot),
	}
	run.slots.Resume(in.Carried)
	run.slots.Turns, run.slots.Members = turns.Each(in.Holders, SlotOf), turns.Each(in.Waiting, memberOf)
	run.Coordinator = turns.Coordinator[string]{
		User: run, Queues: []*turns.Queue[string]{&run.slots}, Found: in.Found, Everybody: true,
		Interval: int64(turns.CensusInterval / time.Second), Grace: int64(contract.FDBSlotGrace / time.Second),
	}
	err := workflow.SetQueryHandler(ctx, contract.QueryState, func() (contract.FDBThrottleState, error) {
		return contract.FDBThrottleState{
			Limit: run.slots.Limit, Holders: turns.Each(run.slots.Turns, holderOf),
			Waiting: turns.Each(run.slots.Order(workflow.Now(ctx).Unix()), waiting), Beyond: run.slots.Beyond.Count,
		}, nil
	})
	if err != nil {
		return err
	}
	return run.Serve(ctx)
}

// throttleRun is the state of one run: slots are turns. A holder keeps its slot for contract.FDBSlotGrace when its workflow does
// not run, since a start command may be on its way. A backup that waits has started nothing, and is dropped.
type throttleRun struct {
	turns.Coordinator[string]
	cluster  string
	options  call.Options
	slots    turns.Queue[string]
	requests workflow.ReceiveChannel
}

// SlotOf returns a holder, or a backup that wants a slot, as a turn.
func SlotOf(holder contract.FDBHolder) turns.Turn[string] {
	return turns.Turn[string]{
		Member: turns.Member[string]{Key: holder.WorkflowID, Namespace: holder.Namespace, Since: holder.Since},
		Began:  holder.Since, ClosedSince: holder.ClosedSince,
	}
}

func memberOf(holder contract.FDBHolder) turns.Member[string] { return SlotOf(holder).Member }

func holderOf(slot turns.Turn[string]) contract.FDBHolder {
	return contract.FDBHolder{
		WorkflowID: slot.Key, Namespace: slot.Namespace, Since: slot.Began, ClosedSince: slot.ClosedSince,
	}
}

func waiting(member turns.Member[string]) contract.FDBHolder {
	return contract.FDBHolder{WorkflowID: member.Key, Namespace: member.Namespace, Since: member.Since}
}

// Find lists the backups that wait and, at the start, those that are in their first snapshot already, which count.
func (r *throttleRun) Find(ctx workflow.Context) error {
	order := contract.Lane{Namespaces: r.slots.Carry(workflow.Now(ctx).Unix()).Namespaces(0)}
	found, err := call.LocalFirstWithin(ctx, r.options.Limits, FDBFindLimit, contract.FindFirstSnapshots, contract.FDBThrottleInput{
		Cluster: r.cluster, Carried: contract.Carried[string]{Lanes: []contract.Lane{order}},
	})
	if err != nil {
		return err
	}
	now := workflow.Now(ctx).Unix()
	for _, id := range found.WorkflowIDs {
		if r.Found {
			break // each has requested it since
		}
		RecordRequest(&r.slots, contract.FDBSlotCount, contract.FDBHolder{WorkflowID: id, Since: now})
		r.slots.Again(id) // it gets the grant, and releases the slot if it needs none
	}
	r.slots.Refill(now, turns.Each(found.Waiting, memberOf), ptr.Deref(found.Beyond, contract.Beyond{}))
	return nil
}

// Receive drains the requests, in their order.
func (r *throttleRun) Receive(ctx workflow.Context) {
	for r.Pending() {
		var request contract.FDBSlotRequest
		if !r.requests.ReceiveAsync(&request) { // skips what cannot be decoded
			continue
		}
		switch request.Action {
		case contract.FDBSlotAcquire, contract.FDBSlotCount, contract.FDBSlotRelease:
		default:
			workflow.GetLogger(ctx).Warn("unknown action, ignored", "action", request.Action, "sender", request.WorkflowID)
			continue
		}
		if request.WorkflowID == "" || request.Cluster != r.cluster {
			workflow.GetLogger(ctx).Warn("request from elsewhere, ignored", "cluster", request.Cluster, "sender", request.WorkflowID)
			continue
		}
		r.NoteMessage(request.WorkflowID)
		RecordRequest(&r.slots, request.Action, contract.FDBHolder{
			WorkflowID: request.WorkflowID, Namespace: request.Namespace, Since: workflow.Now(ctx).Unix(),
		})
	}
}

// Pending reports whether there is a request.
func (r *throttleRun) Pending() bool { return r.requests.Len() > 0 }

// RecordRequest notes what a backup wants. Its workflow runs, since it has sent the request.
func RecordRequest(slots *turns.Queue[string], action contract.FDBSlotAction, requester contract.FDBHolder) {
	id := requester.WorkflowID
	slot := slots.Turn(id)
	switch {
	case action == contract.FDBSlotRelease:
		slots.Leave(id)
		slots.End(id)
	case slot != nil:
		slot.ClosedSince = 0
		if action == contract.FDBSlotAcquire {
			slots.Again(id)
		}
	case action == contract.FDBSlotCount:
		slots.Hold(SlotOf(requester))
	case slots.Member(id) == nil:
		slots.Add(requester.Since, SlotOf(requester).Member)
	}
}

// Pace sets the limit that this worker was started with.
func (r *throttleRun) Pace(ctx workflow.Context) {
	r.slots.Limit = call.Flag(ctx, fdbLimitEffect, cmp.Or(max(0, r.options.FDBSnapshotLimit), defaultFDBSnapshotLimit),
		defaultFDBSnapshotLimit)
}

// Give signals to a backup that it has a slot.
func (r *throttleRun) Give(ctx workflow.Context, slots *turns.Queue[string], slot turns.Turn[string], again bool) error {
	err := workflow.SignalExternalWorkflow(ctx, slot.Key, "", contract.SignalSlotGranted, contract.FDBSlotGrant{}).Get(ctx, nil)
	now := workflow.Now(ctx).Unix()
	var unknown *temporal.UnknownExternalWorkflowExecutionError
	switch gone := errors.As(err, &unknown); {
	case err == nil:
	case temporal.IsCanceledError(err):
		return err
	case gone && again:
		slots.MarkClosed(slot.Key, now)
	case gone:
		slots.End(slot.Key) // it never had a slot, so it has started nothing
	default:
		workflow.GetLogger(ctx).Warn("backup not signalled that it has a slot", "backup", slot.Key, "error", err)
		if !again {
			slots.Requeue(slot, now, now+fdbSlotRetry)
		}
	}
	return nil
}

// Deliver has nothing to do: Give begins each turn itself.
func (r *throttleRun) Deliver(workflow.Context) error { return nil }

// Lost frees the slot: no command that was requested with it can run any more.
func (r *throttleRun) Lost(slots *turns.Queue[string], id string) { slots.End(id) }

// WorkflowID returns the backup's, which is the key.
func (r *throttleRun) WorkflowID(id string) string { return id }

// Next hands everything over to the next run.
func (r *throttleRun) Next(ctx workflow.Context) error {
	return workflow.NewContinueAsNewError(ctx, contract.KindFDBThrottle.Workflow, contract.FDBThrottleInput{
		Cluster: r.cluster, Found: r.Found, Holders: turns.Each(r.slots.Turns, holderOf),
		Waiting: turns.Each(r.slots.Members, waiting), Carried: r.slots.Carry(workflow.Now(ctx).Unix()),
	})
}

// Details shows in Markdown who has a slot and who waits.
func (r *throttleRun) Details(now int64) string {
	line := func(holder contract.FDBHolder) string {
		text := fmt.Sprintf("- `%s` since %s", details.OneLine(holder.WorkflowID), details.Stamp(holder.Since))
		if holder.ClosedSince != 0 {
			text += fmt.Sprintf("; its workflow has not run since %s: the slot is kept until %s, as a start may be on its way",
				details.Stamp(holder.ClosedSince), details.Stamp(holder.ClosedSince+int64(contract.FDBSlotGrace/time.Second)))
		}
		return text
	}
	return fmt.Sprintf("**First snapshots:** %d of at most %d at a time; %d wait.\n",
		len(r.slots.Turns), r.slots.Limit, len(r.slots.Members)) +
		turns.Listed("Have a slot:", turns.Each(r.slots.Turns, holderOf), len(r.slots.Turns), line) +
		turns.Listed("Wait, in this order:", turns.Each(r.slots.Head(now, turns.Shown), waiting), len(r.slots.Members), line) +
		r.slots.BeyondText()
}
