package fake

import (
	"time"

	"go.temporal.io/sdk/worker"

	"holdfast.dev/holdfast/activities/collection"
	"holdfast.dev/holdfast/activities/synchronization"
)

// RegisterPeriodic registers the activities of periodic work over the world; what is a minute old may be collected.
func (w *World) RegisterPeriodic(registry worker.ActivityRegistry) {
	idle := func() error { return nil }
	(&synchronization.Activities{Client: w.Client, Policy: source{w}, OADPNamespace: OADPNamespace, Paused: idle}).Register(registry)
	(&collection.Activities{Client: w.Client, OADPNamespace: OADPNamespace, Grace: time.Minute, Paused: idle}).Register(registry)
}
