package queue

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/watch/caches"
	"holdfast.dev/holdfast/workflows/contract"
)

// ofWaiting returns the positions of the objects that wait for their turn before Velero, as the queue orders them: after all
// that have a turn. A queue that pauses has no order yet. Those that the queue does not carry come last, in the order of their
// creation.
func (p *Positions) ofWaiting(ctx context.Context) ([]change, error) {
	waiting := map[contract.Pool][]shown{}
	failed := caches.Each(ctx, p.Client, &oadpv1alpha1.NonAdminBackup{}, func(object client.Object) {
		nab := object.(*oadpv1alpha1.NonAdminBackup)
		if k8s.WaitsForTurn(nab.Status.Conditions) {
			waiting[contract.PoolBackups] = append(waiting[contract.PoolBackups], shown{object: nab, info: nab.Status.QueueInfo})
		}
	})
	if failed == nil {
		failed = caches.Each(ctx, p.Client, &oadpv1alpha1.NonAdminRestore{}, func(object client.Object) {
			nar := object.(*oadpv1alpha1.NonAdminRestore)
			if k8s.WaitsForTurn(nar.Status.Conditions) {
				waiting[contract.PoolRestores] = append(waiting[contract.PoolRestores], shown{object: nar, info: nar.Status.QueueInfo})
			}
		})
	}
	if failed != nil || len(waiting) == 0 {
		return nil, failed
	}
	p.again = time.After(waitingInterval)
	order, err := p.Turns.Order(ctx)
	if errors.Is(err, ErrNotRunning) || (err == nil && order.Paused) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var changes []change
	for _, pool := range contract.Pools() {
		changes = append(changes, inOrder(waiting[pool], order.Waiting[pool], order.Active[pool])...)
	}
	return changes, nil
}

// inOrder returns the positions that are worth showing. order has the UIDs of those whose place is known.
func inOrder(waiting []shown, order []string, active int) []change {
	places := make(map[string]int, len(order))
	for i, uid := range order {
		places[uid] = active + i + 1
	}
	slices.SortStableFunc(waiting, func(a, b shown) int {
		return cmp.Or(a.object.GetCreationTimestamp().Compare(b.object.GetCreationTimestamp().Time),
			cmp.Compare(a.object.GetName(), b.object.GetName()))
	})
	var changes []change
	last := active + len(order)
	for _, each := range waiting {
		position, known := places[string(each.object.GetUID())]
		if !known {
			last++
			position = last
		}
		if worthShowing(each.info, position) {
			changes = append(changes, change{object: each.object, position: position})
		}
	}
	return changes
}
