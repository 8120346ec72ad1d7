package gate

import (
	"cmp"
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/kinds"
)

// Kind is how the workflow is run.
var Kind = kinds.Kind{
	Kind: contract.KindGate, Activities: contract.Names(contract.ReplayOpenWorkflows), Run: kinds.Completing(Workflow),
}

// Limits of the activity. Temporal's worker controller gives a gate one hour: it shall end by itself before, with a reason.
const (
	attemptTimeout = 20 * time.Minute
	limit          = 50 * time.Minute
	heartbeat      = time.Minute // one history may be large
)

// Workflow replays open workflows of the task queue that it was started on. It fails if one does not replay, or if Temporal
// cannot be read until the limit: a version that nobody could test gets no work. It starts with or without an input.
func Workflow(ctx workflow.Context, in contract.GateInput, _ call.Options) (contract.GateResult, error) {
	queue := workflow.GetInfo(ctx).TaskQueueName
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("**Under way:** open workflows of `%s` are replayed.", queue))
	result, err := call.Execute(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: attemptTimeout, ScheduleToCloseTimeout: limit, HeartbeatTimeout: heartbeat, RetryPolicy: call.Retry(),
	}, contract.ReplayOpenWorkflows, contract.GateRequest{GateInput: in, TaskQueue: queue})
	if err != nil {
		workflow.SetCurrentDetails(ctx, "**Held:** "+call.Cause(err))
		return result, err
	}
	open, replayed := 0, 0
	for _, each := range result.Types {
		open += each.Open
		replayed += each.Replayed
	}
	result.Build = workflow.GetInfo(ctx).GetCurrentBuildID()
	passed := fmt.Sprintf("**Passed:** %d of %d open workflows replayed on build `%s`.",
		replayed, open, cmp.Or(result.Build, "unversioned"))
	if replayed == 0 {
		passed = "**Passed, and shows nothing:** no workflow is open that can be replayed."
	}
	workflow.SetCurrentDetails(ctx, passed)
	return result, nil
}
