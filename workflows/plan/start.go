package plan

import (
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/kinds"
)

// StartKind is how the workflow is run that the Schedule of a plan starts.
var StartKind = kinds.Kind{
	Kind: contract.KindPlanStart, Activities: contract.Names(contract.SignalPlan),
	Run: kinds.Serving(Start),
}

// scheduledAt is set by Temporal on every workflow that a Schedule starts: the time for which it was started.
var scheduledAt = temporal.NewSearchAttributeKeyTime("TemporalScheduledStartTime")

// stale is how long after its time a start is no longer the Schedule's own. Temporal itself is late when it may not start all
// that are due at once.
const stale = time.Hour

// Start signals the workflow of the plan, which makes the run. Somebody has started it by hand, by a trigger or a backfill, if
// the Schedule was not to start it at that time, or long ago.
func Start(ctx workflow.Context, in contract.PlanStartInput, options call.Options) error {
	at, scheduled := workflow.GetTypedSearchAttributes(ctx).GetTime(scheduledAt)
	byHand := !scheduled || !slices.Contains(in.Instants, at.Unix()) || workflow.Now(ctx).Sub(at) > stale
	_, err := call.LocalFirst(ctx, options.Limits, contract.SignalPlan,
		contract.PlanSignal{Cluster: in.Cluster, Ref: in.Ref, ByHand: byHand})
	return err
}
