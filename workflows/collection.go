package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/contract"
)

// How long a collection waits for Velero to look into the storage locations: after a rebuild that takes minutes.
const (
	collectionPatience = 30 * time.Minute
	collectionPoll     = 30 * time.Second
)

const collectionSummary = "Delete what was made for objects that are gone"

// GarbageCollection deletes, once, what was made for objects of tenants that are gone. A Schedule starts it. After a rebuild
// Velero must have looked into the storage locations first, and the NonAdminBackups of what it found must be made: this
// makes them itself, so that no other run need be waited for.
func GarbageCollection(
	ctx workflow.Context, in contract.CollectionInput, options Options,
) (contract.CollectionResult, error) {
	deadline := workflow.Now(ctx).Add(collectionPatience)
	for {
		synced, err := synchronize(ctx, contract.SynchronizationInput(in), options)
		if err != nil {
			return contract.CollectionResult{}, err
		}
		result := contract.CollectionResult{Waiting: synced.Waiting}
		if synced.Waiting == "" && !synced.More {
			result, err = pass[contract.CollectionResult](ctx, options, contract.ActivityCollectOrphans, collectionSummary, in)
			if err != nil || result.Waiting == "" {
				return result, err
			}
		}
		if synced.More {
			result.Waiting = "more backups to be offered to their tenants"
		}
		if !workflow.Now(ctx).Before(deadline) {
			return result, nil // the next one tries again
		}
		workflow.SetCurrentDetails(ctx, fmt.Sprintf(
			"**Waiting:** for Velero to look into %s. Nothing is collected before.", result.Waiting))
		if err := workflow.Sleep(ctx, collectionPoll); err != nil {
			return result, err
		}
	}
}
