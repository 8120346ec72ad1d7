package periodic

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/kinds"
)

// DefaultPlansKind is the workflow that gives namespaces the administrator's plans.
var DefaultPlansKind = kinds.Kind{
	Kind: contract.KindDefaultPlans, Activities: contract.Names(contract.KeepDefaultPlans), Run: kinds.Completing(DefaultPlans),
}

// DefaultPlans gives each namespace, once, the plans that the policy names for it, and takes away what it names no more.
func DefaultPlans(
	ctx workflow.Context, in contract.ScheduledInput, options call.Options,
) (contract.DefaultPlansResult, error) {
	result, err := once(ctx, options.Limits, contract.KeepDefaultPlans, in)
	if err == nil {
		workflow.SetCurrentDetails(ctx, fmt.Sprintf("Created %d, changed %d, deleted %d plans; %d names taken, %d refused. %s",
			result.Created, result.Changed, result.Deleted, result.Taken, result.Refused, result.Problem))
	}
	return result, err
}
