package heartbeat

import (
	"cmp"
	"fmt"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/kinds"
)

// Kind is how the workflow is run.
var Kind = kinds.Kind{
	Kind: contract.KindHeartbeat, Activities: contract.Names(contract.InspectWorker), Run: kinds.Serving(Workflow),
}

// Workflow keeps the newest heartbeat in its memo. Of those that came while no worker ran only the last counts. It has no
// timer: a memo that grows old says that the cluster is silent. The cluster ID belongs to the Kubernetes cluster that was first:
// another one's heartbeats are ignored, and it stops when it finds that, see connect.ClusterCheck.
func Workflow(ctx workflow.Context, in contract.HeartbeatInput, options call.Options) error {
	signals := workflow.GetSignalChannel(ctx, contract.SignalHeartbeat)
	for signals.Len() > 0 || !workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
		now := contract.Heartbeat{Watcher: newest(ctx, signals, in.ClusterUID), At: workflow.Now(ctx).UTC().Truncate(time.Second)}
		if sent := now.Watcher.Sent; !sent.IsZero() && sent.Before(now.At) {
			now.At = sent // it has waited for a worker: what it says is that old
		}
		in.ClusterUID = now.Watcher.ClusterUID
		var err error
		if now.Worker, err = call.LocalFirst(ctx, options.Limits, contract.InspectWorker, in); err != nil {
			return err
		}
		if err := workflow.UpsertMemo(ctx, map[string]any{contract.MemoHeartbeat: now}); err != nil {
			return err
		}
		workflow.SetCurrentDetails(ctx, details(now))
	}
	return workflow.NewContinueAsNewError(ctx, contract.KindHeartbeat.Workflow, in)
}

// newest waits for a signal, and returns the last one that is there and can be decoded, of which nothing else has a part. Only
// those of the owner count: the Kubernetes cluster with that UID or, if it is empty, with the first UID. Earlier versions send
// none, and are taken for the owner.
func newest(ctx workflow.Context, signals workflow.ReceiveChannel, owner string) (last contract.WatcherState) {
	for found := false; !found || signals.Len() > 0; {
		var signal converter.RawValue
		signals.Receive(ctx, &signal)
		var next contract.WatcherState
		if err := converter.GetDefaultDataConverter().FromPayload(signal.Payload(), &next); err != nil || next.OfAnotherCluster(owner) {
			continue
		}
		owner = cmp.Or(owner, next.ClusterUID)
		last, found = next, true
	}
	last.ClusterUID = owner
	return last
}

func details(now contract.Heartbeat) string {
	return fmt.Sprintf("**Heartbeat at %s.** %d unfinished, %d objectives and %d verifications missed.",
		now.At.Format(time.RFC3339), now.Watcher.Unfinished, now.Watcher.ObjectivesMissed, now.Watcher.VerificationsMissed)
}
