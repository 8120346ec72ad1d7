package kinds

import (
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/entity"
)

// Kind is a kind of workflows, with what is needed to run it.
type Kind struct {
	contract.Kind
	// Activities are those that were made for it, by their wire names. Other kinds may call them too.
	Activities []string
	// Read is the activity that reads the object, for a workflow that entity.Serve runs; empty for all others.
	Read string
	// Decisions are made from the object's view; nil without Read.
	Decisions entity.Decider

	// Run returns the function of the workflow.
	Run func(call.Options) any
}

// Register registers the kind's workflow under its wire name.
func (k Kind) Register(registry worker.WorkflowRegistry, options call.Options) {
	versioning := workflow.VersioningBehaviorAutoUpgrade
	if k.Pinned {
		versioning = workflow.VersioningBehaviorPinned
	}
	registry.RegisterWorkflowWithOptions(k.Run(options), workflow.RegisterOptions{Name: k.Workflow, VersioningBehavior: versioning})
}

// Serving returns the function of a workflow without a result.
func Serving[In any](run func(workflow.Context, In, call.Options) error) func(call.Options) any {
	return func(options call.Options) any {
		return func(ctx workflow.Context, in In) error { return run(ctx, in, options) }
	}
}

// Completing returns the function of a workflow with a result.
func Completing[In, Out any](run func(workflow.Context, In, call.Options) (Out, error)) func(call.Options) any {
	return func(options call.Options) any {
		return func(ctx workflow.Context, in In) (Out, error) { return run(ctx, in, options) }
	}
}
