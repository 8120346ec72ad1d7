package velero

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/starter/watch/controllers"
	"holdfast.dev/holdfast/workflows/contract"
)

// turnPatience is how long a new object may wait for its turn before its workflow starts and writes that it waits. It is a second
// longer for each turn that has ended within the last second, and turnPatienceMost at most. A turn that comes sooner starts the
// workflow, which then has nothing to write but that its Velero object is made. Then Turns says how many may start for that.
const (
	turnPatience     = 2 * time.Second
	turnPatienceMost = 30 * time.Second
	// heldBack is how soon, at the latest, an object is judged again that does not start yet.
	heldBack = 5 * time.Second
)

// Turns is where the watchers send what concerns the queue before Velero.
type Turns interface {
	// Limited reports whether objects of the pool need turns.
	Limited(pool contract.Pool) bool
	// Ends returns how many turns of the pool have ended within the last second.
	Ends(pool contract.Pool) int
	// Announce reports whether the workflow of one more object may start now only to write that it waits.
	Announce(pool contract.Pool) bool
	// Request notes that an object needs a turn; NotNeeded, that it needs none any more, for ever; Gone, that it was deleted,
	// although Velero may work on what was made for it.
	Request(ctx context.Context, pool contract.Pool, object client.Object)
	NotNeeded(pool contract.Pool, object client.Object)
	Gone(pool contract.Pool, object client.Object)
	// BeganToWait is Request for an object that may have had a turn that it could not use.
	BeganToWait(ctx context.Context, pool contract.Pool, object client.Object)
}

// inTurn changes the view of an object that needs a turn, and requests one. waits: its status says that it waits. needs: it has
// no Velero object, and may still begin.
func (s *served[T]) inTurn(ctx context.Context, object T, view controllers.View, waits, needs bool) controllers.View {
	if !s.env.Turns.Limited(s.pool) {
		if waits { // by a limit that a worker knows, or knew
			s.env.Turns.Request(ctx, s.pool, object)
		}
		view.Due = view.Due || waits
		return view
	}
	view.Unstarted = view.Unstarted && !waits // its workflow has said so, and the queue starts it again
	if !needs {
		return view
	}
	s.env.Turns.Request(ctx, s.pool, object)
	age := time.Since(object.GetCreationTimestamp().Time)
	patience := min(turnPatience+time.Duration(s.env.Turns.Ends(s.pool))*time.Second, turnPatienceMost)
	switch {
	case s.Own.Phase(object) != "" || age <= -turnPatience:
	case age < patience:
		view.Due, view.Unstarted, view.Again = false, false, min(patience-age, heldBack)
	case !s.env.Turns.Announce(s.pool):
		view.Due, view.Unstarted, view.Again = false, false, heldBack
	}
	return view
}

// beganToWait reports whether an object waits for a turn that did not when it was refused, or had its Velero object. A new object
// has requested one already, if there is a limit here.
func (s *served[T]) beganToWait(before, after client.Object) bool {
	return k8s.WaitsForTurn(k8s.Conditions(after)) && !k8s.WaitsForTurn(k8s.Conditions(before)) &&
		(s.Own.Phase(before) != "" || !s.env.Turns.Limited(s.pool))
}

// turnEnded sends that Velero has finished what was made for an object. What only says that it was made for it ends no turn.
func (s *served[T]) turnEnded(ctx context.Context, made client.Object) {
	object, found := s.of(ctx, made)
	if found && (owner.Derived(made.GetName(), s.ClusterID, object) || owner.Claims(object, made.GetName())) {
		s.env.Turns.NotNeeded(s.pool, object)
	}
}

// stalls reports whether an object says since now that Velero stalls.
func stalls(before, after client.Object) bool {
	return k8s.Stalled(k8s.Conditions(after)) && !k8s.Stalled(k8s.Conditions(before))
}

// turnGone sends that an object is gone that may have waited.
func (s *served[T]) turnGone(object client.Object) {
	if s.awaitsCreation(object) || s.backingOff(object) || k8s.Waited(k8s.Conditions(object)) {
		s.env.Turns.Gone(s.pool, object)
	}
}
