package periodic

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/kinds"
)

// CollectionKind is the workflow that collects orphans.
var CollectionKind = kinds.Kind{
	Kind: contract.KindCollection, Activities: contract.Names(contract.CollectOrphans), Run: kinds.Completing(GarbageCollection),
}

// How long a collection waits for Velero to list the storage locations: after a rebuild that takes minutes.
const (
	collectionPatience = 30 * time.Minute
	collectionPoll     = 30 * time.Second
)

// GarbageCollection deletes, once, the objects that were made for deleted objects of tenants. A Schedule starts it. After a
// rebuild Velero must have listed the storage locations first, and the NonAdminBackups of what it found must exist: this
// workflow makes them itself, and need not wait for another. Each wait costs one small activity. Waiting is limited, because a
// tenant's store may get new backups all the time: a Backup with data is never deleted anyway.
func GarbageCollection(
	ctx workflow.Context, in contract.CollectionInput, options call.Options,
) (contract.CollectionResult, error) {
	deadline := workflow.Now(ctx).Add(collectionPatience)
	for {
		result, err := collect(ctx, in, options, deadline)
		if err != nil || result.Waiting == "" || !workflow.Now(ctx).Before(deadline) {
			return result, err // if it still waits, the next run tries again
		}
		workflow.SetCurrentDetails(ctx, fmt.Sprintf(
			"**Waiting** for Velero to list the backups in %s. Nothing is collected before that.", result.Waiting))
		if err := workflow.Sleep(ctx, collectionPoll); err != nil {
			return result, err
		}
	}
}

// collect synchronizes and collects, unless it has to wait.
func collect(
	ctx workflow.Context, in contract.CollectionInput, options call.Options, deadline time.Time,
) (contract.CollectionResult, error) {
	ask := func(probe bool) (contract.CollectionResult, error) {
		in.Probe = probe
		return once(ctx, options.Limits, contract.CollectOrphans, in)
	}
	if seen, err := ask(true); err != nil || seen.Waiting != "" {
		return seen, err
	}
	for {
		synced, err := synchronize(ctx, contract.ScheduledInput{Cluster: in.Cluster}, options, deadline)
		if err != nil || synced.Waiting != "" {
			return contract.CollectionResult{Waiting: synced.Waiting}, err
		}
		if !synced.More || !workflow.Now(ctx).Before(deadline) {
			return ask(false)
		}
	}
}
