package gate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.uber.org/zap"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/workflows/contract"
)

// maxNamed is how many workflows an error names; the others are counted.
const maxNamed = 10

// Activities replays open workflows.
type Activities struct {
	Log       *zap.Logger
	Temporal  client.Client
	Namespace string
	// Data and Failures read what is in the histories, as the worker's client does.
	Data     converter.DataConverter
	Failures converter.FailureConverter

	// workflows registers those of the task queue, as the worker has them.
	workflows func(worker.WorkflowRegistry)
}

// Of returns the activities of a task queue whose workflows a function registers.
func (a Activities) Of(workflows func(worker.WorkflowRegistry)) *Activities {
	a.workflows = workflows
	return &a
}

// Register registers the activity with a worker under its wire name.
func (a *Activities) Register(registry worker.ActivityRegistry) {
	activities.Register(registry, contract.ReplayOpenWorkflows, a.Replay)
}

// progress is what heartbeats carry.
type progress struct {
	Listed   int `json:"listed"`
	Chosen   int `json:"chosen"`
	Replayed int `json:"replayed"`
}

// Replay replays a sample of the open workflows of a task queue. If there is one that does not replay, the sample is replayed to
// its end all the same, and the error is final; an error of Temporal is not.
func (a *Activities) Replay(ctx context.Context, in contract.GateRequest) (contract.GateResult, error) {
	found, err := a.list(ctx, in)
	if err != nil {
		return contract.GateResult{}, fmt.Errorf("list the open workflows of task queue %s: %w", in.TaskQueue, err)
	}
	chosen := found.choose()
	result := contract.GateResult{Unlisted: found.unlisted}
	replayed := map[string]int{}
	var findings []contract.GateFinding
	for i, run := range chosen {
		activity.RecordHeartbeat(ctx, progress{Listed: found.listed, Chosen: len(chosen), Replayed: i})
		problem, err := a.examine(ctx, run, &result)
		if err != nil {
			return contract.GateResult{}, fmt.Errorf("read the history of %s: %w", run.ID, err)
		}
		switch {
		case problem == passed:
			replayed[run.Workflow]++
		case problem != skipped:
			run.Problem = problem
			findings = append(findings, run)
			a.Log.Error("workflow does not replay", zap.String("workflowType", run.Workflow), zap.String("workflowID", run.ID),
				zap.String("runID", run.Run), zap.String("problem", problem))
		}
	}
	result.Types = found.types(replayed)
	if len(findings) > 0 {
		return result, held(findings, len(chosen))
	}
	return result, nil
}

// What examine returns if there is no problem.
const (
	passed  = ""
	skipped = "skipped"
)

// examine replays one run. It returns the problem, or passed or skipped.
func (a *Activities) examine(ctx context.Context, run contract.GateFinding, result *contract.GateResult) (string, error) {
	history, err := a.history(ctx, run)
	var gone *serviceerror.NotFound
	switch {
	case errors.As(err, &gone):
		result.Gone++
		return skipped, nil
	case errors.Is(err, errTooLarge):
		result.TooLarge++
		return skipped, nil
	case err != nil:
		return skipped, err
	}
	served := asServed(history)
	switch {
	case len(served.Events) == 0:
		result.New++
		return skipped, nil
	case pinned(served):
		result.Pinned++
		return skipped, nil
	}
	return a.replay(run, served), nil
}

// held is the error of a gate that has found workflows that do not replay.
func held(findings []contract.GateFinding, chosen int) error {
	count := len(findings)
	findings = findings[:min(count, maxNamed)]
	var named strings.Builder
	for _, f := range findings {
		fmt.Fprintf(&named, "; %s %s (run %s): %s", f.Workflow, f.ID, f.Run, f.Problem)
	}
	return temporal.NewNonRetryableApplicationError(fmt.Sprintf(
		"%d of %d open workflows do not replay on this build: it must not become current, or they are stuck; "+
			"see docs/temporal.md#the-gate%s", count, chosen, named.String()), contract.ErrorDoesNotReplay, nil, findings)
}
