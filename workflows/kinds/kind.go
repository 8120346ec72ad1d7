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
	// Served is set for a workflow that serves an object.
	Served *Served

	// Run returns the function of the workflow.
	Run func(call.Options) any
}

// Served is what tests of all kinds know of one that serves objects, whatever its view is.
type Served struct {
	// Read is the activity that reads the object.
	Read string
	// Gone is the view of an object that is not there, Waits that of one that waits.
	Gone, Waits any
	// Settled reports whether nothing is to be done for an object of that view.
	Settled func(view any) bool
}

// Of returns a kind that serves objects.
func Of[In entity.Input, Args, View any](kind entity.Kind[In, Args, View]) Kind {
	var gone View
	settled := func(view any) bool {
		v, is := view.(View)
		return is && kind.Settled(v)
	}
	return Kind{
		Kind: kind.Kind, Activities: append(contract.Names(kind.Read), kind.Activities...), Run: kind.Run,
		Served: &Served{Read: kind.Read.Name, Gone: gone, Waits: kind.Waits, Settled: settled},
	}
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
