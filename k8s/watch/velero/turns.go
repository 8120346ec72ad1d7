package velero

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	turns "holdfast.dev/holdfast/activities/queue"
	"holdfast.dev/holdfast/k8s/watch/watched"
	"holdfast.dev/holdfast/workflows/contract"
)

// turnPatience is how long a new object may wait for its turn before its workflow starts and writes that it waits. A turn that comes
// sooner starts the workflow, which then has nothing to write but that its Velero object is made.
const turnPatience = 2 * time.Second

// Turns is where the watchers send what concerns the queue before Velero.
type Turns interface {
	// Limited reports whether objects of the pool need turns.
	Limited(pool contract.Pool) bool
	// Request notes that an object needs a turn; Ended, that it needs none any more, for ever.
	Request(ctx context.Context, pool contract.Pool, object client.Object)
	Ended(key contract.TurnKey)
	// NotNeeded is Ended for an object that is gone, or is to go.
	NotNeeded(pool contract.Pool, object client.Object)
}

// inTurn changes the view of an object that needs a turn, and requests one. waits: its status says that it waits.
func (s *served[T]) inTurn(ctx context.Context, object T, view watched.View, waits bool) watched.View {
	if !s.env.Turns.Limited(s.pool) {
		view.Due = view.Due || waits
		return view
	}
	if !waits && !view.Unstarted {
		return view
	}
	s.env.Turns.Request(ctx, s.pool, object)
	age := time.Since(object.GetCreationTimestamp().Time)
	if phaseOf(object) == "" && age > -turnPatience && age < turnPatience {
		view.Due, view.Unstarted, view.Again = false, false, turnPatience-age
	}
	return view
}

// turnEnded sends that Velero has finished what was made for an object.
func (s *served[T]) turnEnded(ctx context.Context, made client.Object) {
	key, is := turns.KeyOf(s.pool, s.origin, made, func(name types.NamespacedName) types.UID {
		object, found := s.Cached(ctx, name)
		if !found {
			return ""
		}
		return object.GetUID()
	})
	if is {
		s.env.Turns.Ended(key)
	}
}

// turnNotNeeded sends that an object is gone, or is to go, that may have waited.
func (s *served[T]) turnNotNeeded(object client.Object) {
	if awaitsCreation(object) || backingOff(object) {
		s.env.Turns.NotNeeded(s.pool, object)
	}
}
