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

// How long a collection waits for Velero to look into the storage locations: after a rebuild that takes minutes.
const (
	collectionPatience = 30 * time.Minute
	collectionPoll     = 30 * time.Second
)

// GarbageCollection deletes, once, what was made for objects of tenants that are gone. A Schedule starts it. After a rebuild
// Velero must have looked into the storage locations first, and the NonAdminBackups of what it found must be made: this
// makes them itself, so that no other run need be waited for. Waiting costs one small activity at a time. Tenants whose stores
// hold ever more backups are not waited for without end: a Backup with data is never deleted.
func GarbageCollection(
	ctx workflow.Context, in contract.CollectionInput, options call.Options,
) (contract.CollectionResult, error) {
	deadline := workflow.Now(ctx).Add(collectionPatience)
	for {
		result, err := collect(ctx, in, options, deadline)
		if err != nil || result.Waiting == "" || !workflow.Now(ctx).Before(deadline) {
			return result, err // if it still waits, the next one tries again
		}
		workflow.SetCurrentDetails(ctx, fmt.Sprintf(
			"**Waiting:** for Velero to look into %s. Nothing is collected before.", result.Waiting))
		if err := workflow.Sleep(ctx, collectionPoll); err != nil {
			return result, err
		}
	}
}

// collect synchronizes and collects, unless there is something to wait for.
func collect(
	ctx workflow.Context, in contract.CollectionInput, options call.Options, deadline time.Time,
) (contract.CollectionResult, error) {
	ask := func(probe bool) (contract.CollectionResult, error) {
		in.Probe = probe
		return pass(ctx, options.Limits, contract.CollectOrphans, in)
	}
	if seen, err := ask(true); err != nil || seen.Waiting != "" {
		return seen, err
	}
	for {
		synced, err := synchronize(ctx, contract.SynchronizationInput{Cluster: in.Cluster}, options, deadline)
		if err != nil || synced.Waiting != "" {
			return contract.CollectionResult{Waiting: synced.Waiting}, err
		}
		if !synced.More || !workflow.Now(ctx).Before(deadline) {
			return ask(false)
		}
	}
}
