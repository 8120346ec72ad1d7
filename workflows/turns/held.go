package turns

import (
	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
)

// Held is what the workflow of an object does with its turn before Velero. Turn outlives a run.
type Held struct {
	*contract.Turn
	cluster string
	key     contract.TurnKey
	used    bool // a Velero object was made with it
}

// Of returns what the workflow of an object does with that turn of the pool.
func Of(pool contract.Pool, in contract.ObjectInput, turn *contract.Turn) Held {
	return Held{Turn: turn, cluster: in.Cluster, key: contract.TurnKey{Pool: pool, ObjectRef: in.Ref}}
}

// OfDrill is Of for the workflow of a drill, whose turn is one of the restores'.
func OfDrill(in contract.ObjectInput, turn *contract.Turn) Held {
	held := Of(contract.PoolRestores, in, turn)
	held.key.Drill = true
	return held
}

// Note notes a turn that was given.
func (h *Held) Note(turn contract.Turn) {
	if turn.Given >= h.Given && turn.Number > 0 {
		*h.Turn = turn
	}
}

// Used notes that the Velero object was made with it.
func (h *Held) Used() { h.used = true }

// Use is how the turn is used, as the object says.
type Use struct {
	// Unfinished: there is a Velero object and Velero has not finished. Stalled: it does not say that it has.
	Unfinished, Stalled bool
	// Waits: the object waits for a turn.
	Waits bool
}

// Settle gives the turn back unless the watcher's news will end it: they do when Velero finishes what was made with it.
func (h *Held) Settle(ctx workflow.Context, limits call.Limits, use Use) error {
	if h.Number == 0 || (use.Unfinished && !use.Stalled) {
		return nil
	}
	// Of a run that a worker served which knows no turns, the census takes the turn back.
	if (!h.used || use.Stalled) && workflow.GetVersion(ctx, "return-velero-turn", workflow.DefaultVersion, 1) == 1 {
		back := contract.TurnReturn{Cluster: h.cluster, TurnKey: h.key, Turn: h.Number, Waits: use.Waits}
		if _, err := call.LocalFirst(ctx, limits, contract.ReturnTurn, back); err != nil {
			return err
		}
	}
	*h.Turn, h.used = contract.Turn{}, false
	return nil
}
