package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/entity"
)

// NonAdminBackupStorageLocation serves one NonAdminBackupStorageLocation from its creation, or any later event, until it is
// settled; the next event starts it again under the same ID. It is the only writer of the object's status. Nothing waits
// here for an administrator or for Velero: what they do is an event.
func NonAdminBackupStorageLocation(ctx workflow.Context, in contract.LocationInput, options Options) error {
	run := &locationRun{in: in, options: options, signals: workflow.GetSignalChannel(ctx, contract.SignalChanged)}
	err := workflow.SetQueryHandler(ctx, contract.QueryState, func() (contract.LocationState, error) {
		return contract.LocationState{View: run.view}, nil
	})
	if err != nil {
		return err
	}
	return entity.Serve(ctx, run)
}

// secretLag is what Velero gets to see a Secret that was just made: far more than the events of a healthy API server take.
const secretLag = 500 * time.Millisecond

// longestBreath is the wait between two looks at what others hold.
const longestBreath = time.Minute

type locationRun struct {
	in      contract.LocationInput
	options Options
	signals workflow.ReceiveChannel
	view    contract.LocationView
	// breath is how long the next wait is; waited is the view at the last one.
	breath time.Duration
	waited contract.LocationView
}

// locationStepsInRow limits the local activities of a pass: they all run again after a kill.
const locationStepsInRow = 4

// Pass implements entity.Object. What comes to nothing again and again is held by somebody: the next pass looks anew.
func (r *locationRun) Pass(ctx workflow.Context) (entity.Outcome, error) {
	step := stepRefreshLocation
	for range locationStepsInRow {
		view, err := call.LocalFirst(ctx, r.options.Limits, locationSteps.Activity(step), contract.LocationStep{Ref: r.in.Ref})
		if err != nil {
			return entity.Waiting, err
		}
		r.view = view
		if step = nextLocationStep(view); step == entity.Settle {
			break
		}
		if view.CopyMade {
			if err := workflow.Sleep(ctx, secretLag); err != nil {
				return entity.Waiting, err
			}
		}
	}
	return entity.OutcomeOf(step), r.show(ctx)
}

// Drain implements entity.Object.
func (r *locationRun) Drain() int { return drain(r.signals) }

// Carry implements entity.Object.
func (r *locationRun) Carry() any { return r.in }

func (r *locationRun) show(ctx workflow.Context) error {
	return showPhases(ctx, r.view.Phase, &r.in.ShownPhase, r.view.Velero.Phase, &r.in.ShownVeleroPhase)
}

// Wait implements entity.Object: a short pause, shorter than a signal takes to arrive. It grows while nothing changes:
// something is held by somebody else, whose events are signals that a sleeper does not hear.
func (r *locationRun) Wait(ctx workflow.Context) error {
	r.breath = min(2*r.breath, longestBreath)
	if r.view != r.waited {
		r.waited, r.breath = r.view, entity.Pause
	}
	details := "**Working:** " + nextLocationStep(r.view).Summary
	if r.view.Held != "" {
		details = "**Waiting** for somebody to take their finalizers off: " + oneLine(r.view.Held)
	}
	workflow.SetCurrentDetails(ctx, details)
	return workflow.Sleep(ctx, r.breath)
}

// drain empties a channel of SignalChanged without blocking and returns how many signals there were. Those with an unreadable
// payload count too: ReceiveAsync passes over them, Len does not.
func drain(signals workflow.ReceiveChannel) int { return drainNoting(signals, new(bool)) }

// drainNoting drains, and sets volumes if a signal spoke of them.
func drainNoting(signals workflow.ReceiveChannel, volumes *bool) int {
	waiting := signals.Len()
	for received := 0; ; received++ {
		var changed contract.Changed
		if !signals.ReceiveAsync(&changed) {
			return max(waiting, received)
		}
		*volumes = *volumes || changed.Volumes
	}
}

// showPhases brings the search attributes up to date when a phase changed.
func showPhases(ctx workflow.Context, phase string, shownPhase *string, veleroPhase string, shownVelero *string) error {
	var updates []temporal.SearchAttributeUpdate
	if phase != "" && phase != *shownPhase {
		updates = append(updates, contract.AttributePhase.ValueSet(phase))
		*shownPhase = phase
	}
	if veleroPhase != "" && veleroPhase != *shownVelero {
		updates = append(updates, contract.AttributeVeleroPhase.ValueSet(veleroPhase))
		*shownVelero = veleroPhase
	}
	if len(updates) == 0 {
		return nil
	}
	return workflow.UpsertTypedSearchAttributes(ctx, updates...)
}
