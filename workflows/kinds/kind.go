package kinds

import (
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/entity"
)

// Kind is a kind of workflows as it is run.
type Kind struct {
	contract.Kind
	// Activities are those that were made for it, by their names on the wire. Other kinds may call them too.
	Activities []string
	// Read is the activity that reads the object of a workflow that entity.Serve runs; empty with all others.
	Read string
	// Decisions are made from what was read; nil without Read.
	Decisions entity.Decider

	// Run makes the function of the workflow.
	Run func(call.Options) any
}

// Register makes the kind's workflow known under its wire name.
func (k Kind) Register(registry worker.WorkflowRegistry, options call.Options) {
	versioning := workflow.VersioningBehaviorAutoUpgrade
	if k.Pinned {
		versioning = workflow.VersioningBehaviorPinned
	}
	registry.RegisterWorkflowWithOptions(k.Run(options), workflow.RegisterOptions{Name: k.Workflow, VersioningBehavior: versioning})
}

// Serving makes the function of a workflow without a result.
func Serving[In any](run func(workflow.Context, In, call.Options) error) func(call.Options) any {
	return func(options call.Options) any {
		return func(ctx workflow.Context, in In) error { return run(ctx, in, options) }
	}
}

// Completing makes the function of a workflow with a result.
func Completing[In, Out any](run func(workflow.Context, In, call.Options) (Out, error)) func(call.Options) any {
	return func(options call.Options) any {
		return func(ctx workflow.Context, in In) (Out, error) { return run(ctx, in, options) }
	}
}
