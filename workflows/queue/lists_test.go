package queue_test

import (
	"cmp"
	"context"
	"slices"

	"holdfast.dev/holdfast/workflows/contract"
)

// describe is contract.DescribeWorkflows.
func (w *world) describe(_ context.Context, in contract.Workflows) (contract.Workflows, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts++
	runs := map[string]bool{}
	for _, o := range w.objects {
		runs[contract.WorkflowID("west", o.key.Pool.Kind(), o.key.ObjectRef)] = o.flow
	}
	var closed contract.Workflows
	for _, id := range in.WorkflowIDs {
		if !runs[id] {
			closed.WorkflowIDs = append(closed.WorkflowIDs, id)
		}
	}
	return closed, w.away
}

// find is contract.FindTurns. While the API server is away it fails, and the list that comes in the end began then: who waits and the
// policy are older than what is active.
func (w *world) find(_ context.Context, in contract.TurnsWanted) (contract.TurnsFound, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	listed := w.lists(in)
	if w.away != nil {
		if w.stale == nil {
			w.stale = &listed
		}
		return contract.TurnsFound{}, w.away
	}
	if w.stale != nil {
		for pool, of := range w.stale.Pools {
			of.Active = listed.Pools[pool].Active
			of.Waiting = slices.DeleteFunc(of.Waiting, func(m contract.TurnMember) bool {
				o := w.of(m.TurnKey)
				return !o.waits && !o.gone
			})
			w.stale.Pools[pool] = of
		}
		listed, w.stale = *w.stale, nil
	}
	if w.found++; w.found == 1 && w.runs == 1 {
		w.wake()
	}
	w.notes("listed, policy %s", listed.Rules.Version)
	for _, pool := range contract.Pools() {
		if over := w.over[pool]; over.Until <= w.unix() || listed.Rules.Limits[pool] == 0 {
			w.limited(pool, listed.Rules.Limits[pool])
		}
	}
	return listed, nil
}

// lists lists the objects as they are now.
func (w *world) lists(in contract.TurnsWanted) contract.TurnsFound {
	found := contract.TurnsFound{Rules: w.rules, Pools: map[contract.Pool]contract.PoolFound{}}
	for pool := range w.rules.Limits {
		of := contract.PoolFound{}
		var waiting [contract.TurnLanes][]contract.TurnMember
		for _, o := range w.objects {
			member := contract.TurnMember{TurnKey: o.key, Lane: o.lane, Created: o.created}
			doubted := slices.Contains(in.Doubted, o.key)
			switch {
			case o.key.Pool != pool || o.gone || o.stalled:
			case o.active:
				member.Created = o.made
				if o.orphan && !doubted {
					member.UID = "of-" + o.key.UID
					doubted = slices.Contains(in.Doubted, member.TurnKey)
				}
				if in.Unknown[pool] || doubted {
					of.Active = append(of.Active, member)
				}
			case o.waits && !o.orphan:
				waiting[o.lane] = append(waiting[o.lane], member)
			}
		}
		for lane, all := range waiting {
			slices.SortStableFunc(all, func(a, b contract.TurnMember) int { return cmp.Compare(a.Created, b.Created) })
			namespace := func(m contract.TurnMember) string { return m.Namespace }
			var carried []string
			if lane < len(in.Lanes[pool]) {
				carried = in.Lanes[pool][lane].Namespaces
			}
			front, beyond := contract.Front(all, contract.MaxTurnsFound, namespace, carried, contract.NamespacesOf(all, namespace))
			for _, member := range all {
				name := contract.TurnName{Pool: pool, Namespace: member.Namespace, Name: member.Name}
				if !slices.Contains(front, member) && slices.Contains(in.Named, name) {
					of.Waiting = append(of.Waiting, member)
					beyond.Count--
				}
			}
			of.Waiting, of.Beyond = append(of.Waiting, front...), append(of.Beyond, beyond)
		}
		found.Pools[pool] = of
	}
	return found
}
