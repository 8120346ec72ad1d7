package activities

import (
	"context"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"

	"holdfast.dev/holdfast/workflows/contract"
)

// Register registers an activity with a worker under its wire name.
func Register[In, Out any](
	registry worker.ActivityRegistry, as contract.Activity[In, Out], function func(context.Context, In) (Out, error),
) {
	registry.RegisterActivityWithOptions(function, activity.RegisterOptions{Name: as.Name})
}

// RegisterEffect is Register for a function that returns nothing but an error.
func RegisterEffect[In any](
	registry worker.ActivityRegistry, as contract.Activity[In, contract.None], function func(context.Context, In) error,
) {
	registry.RegisterActivityWithOptions(function, activity.RegisterOptions{Name: as.Name})
}

// RegisterGuarded is Register for a function that is not for an object: its retries get no Event.
func RegisterGuarded[In, Out any](
	registry worker.ActivityRegistry, paused func() error, as contract.Activity[In, Out],
	function func(context.Context, In) (Out, error),
) {
	Register(registry, as, Guard(paused, function, func(In, Out, activity.Info) {}))
}

// NeverPaused is for kinds that no other controller serves: FoundationDB's.
func NeverPaused() error { return nil }
