package entity

import (
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/contract"
)

// Drain empties a channel of signals without blocking and returns how many there were. Those with an unreadable payload count
// too: ReceiveAsync skips them, Len does not.
func Drain(signals workflow.ReceiveChannel) int {
	return DrainNoting(signals, func(contract.Changed) {})
}

// DrainNoting drains, and calls note with each payload.
func DrainNoting[Payload any](signals workflow.ReceiveChannel, note func(Payload)) int {
	waiting := signals.Len()
	for received := 0; ; received++ {
		var payload Payload
		if !signals.ReceiveAsync(&payload) {
			return max(waiting, received)
		}
		note(payload)
	}
}

// Show updates the search attributes if a phase has changed since it was last shown. An empty phase is left as it is.
func Show(ctx workflow.Context, shown *contract.ObjectInput, phase, veleroPhase string) error {
	var updates []temporal.SearchAttributeUpdate
	if phase != "" && phase != shown.ShownPhase {
		updates = append(updates, contract.AttributePhase.ValueSet(phase))
		shown.ShownPhase = phase
	}
	if veleroPhase != "" && veleroPhase != shown.ShownVeleroPhase {
		updates = append(updates, contract.AttributeVeleroPhase.ValueSet(veleroPhase))
		shown.ShownVeleroPhase = veleroPhase
	}
	if len(updates) == 0 {
		return nil
	}
	return workflow.UpsertTypedSearchAttributes(ctx, updates...)
}
