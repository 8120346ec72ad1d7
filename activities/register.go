package activities

import (
	"context"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"

	"holdfast.dev/holdfast/workflows/contract"
)

// register makes an activity known to a worker under its wire name.
func register[In, Out any](
	registry worker.ActivityRegistry, as contract.Activity[In, Out], function func(context.Context, In) (Out, error),
) {
	registry.RegisterActivityWithOptions(function, activity.RegisterOptions{Name: as.Name})
}

// registerEffect is register for a function that returns nothing but an error.
func registerEffect[In any](
	registry worker.ActivityRegistry, as contract.Activity[In, contract.None], function func(context.Context, In) error,
) {
	registry.RegisterActivityWithOptions(function, activity.RegisterOptions{Name: as.Name})
}

// unpaused: no other controller serves FoundationDB's kinds.
func unpaused() error { return nil }

// untold: a step that had to be repeated is no news to the tenant.
func untold[In, Out any](In, Out, activity.Info) {}
