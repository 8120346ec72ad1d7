package queue

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s"
	"holdfast.dev/holdfast/starter/watch/caches"
	"holdfast.dev/holdfast/workflows/connect"
)

// ofWaiting returns the positions of the objects that wait for their turn before Velero, as the queue orders them: after all
// that have a turn. A queue that pauses has no order yet. Those that the queue does not carry come last, in the order of their
// creation.
func (p *Positions) ofWaiting(ctx context.Context) ([]change, error) {
	waiting := map[*kind][]client.Object{}
	for _, of := range kinds {
		err := caches.Each(ctx, p.Client, of.object, func(object client.Object) {
			if k8s.WaitsForTurn(k8s.Conditions(object)) {
				waiting[of] = append(waiting[of], object)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	if len(waiting) == 0 {
		return nil, nil
	}
	p.again = time.After(waitingInterval)
	order, err := p.Turns.Order(ctx)
	if errors.Is(err, connect.ErrNotRunning) || (err == nil && order.Paused) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var changes []change
	for _, of := range kinds {
		changes = append(changes, inOrder(of, waiting[of], order.Waiting[of.pool], order.Active[of.pool])...)
	}
	return changes, nil
}

// inOrder returns the positions that are worth showing. order has the UIDs of those whose place is known.
func inOrder(of *kind, waiting []client.Object, order []string, active int) []change {
	places := make(map[string]int, len(order))
	for i, uid := range order {
		places[uid] = active + i + 1
	}
	slices.SortStableFunc(waiting, func(a, b client.Object) int {
		return cmp.Or(a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time), cmp.Compare(a.GetName(), b.GetName()))
	})
	var changes []change
	last := active + len(order)
	for _, object := range waiting {
		position, known := places[string(object.GetUID())]
		if !known {
			last++
			position = last
		}
		if worthShowing(*of.status(object).info, position) {
			changes = append(changes, change{of: of, object: object, position: position})
		}
	}
	return changes
}
