package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/contract"
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
	return run.serve(ctx)
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

func (r *locationRun) serve(ctx workflow.Context) error {
	for {
		drain(r.signals)
		step, err := r.act(ctx)
		if err != nil {
			return err
		}
		if err := r.show(ctx); err != nil {
			return err
		}
		// From an empty drain to the return nothing may yield: an event that came meanwhile would be lost.
		switch {
		case step == stepSettled:
			if drain(r.signals) == 0 {
				return nil
			}
		case workflow.GetInfo(ctx).GetContinueAsNewSuggested():
			if drain(r.signals) == 0 {
				return workflow.NewContinueAsNewError(ctx, contract.WorkflowLocation, r.in)
			}
		default:
			if err := r.wait(ctx); err != nil {
				return err
			}
		}
	}
}

// act reads the present state and takes every step that is due. It returns stepSettled, or stepWait when the steps come to
// nothing again and again.
func (r *locationRun) act(ctx workflow.Context) (locationStep, error) {
	step := locationStep(contract.ActivityRefreshLocation)
	for range maxStepsInARow {
		view, err := localFirst[contract.LocationView](ctx, r.options, string(step), locationSummaries[step],
			contract.LocationStep{Ref: r.in.Ref})
		if err != nil {
			return "", err
		}
		r.view = view
		if step = nextLocationStep(view); step == stepSettled {
			return step, nil
		}
		if view.CopyMade {
			if err := workflow.Sleep(ctx, secretLag); err != nil {
				return "", err
			}
		}
	}
	return stepWait, nil
}

func (r *locationRun) show(ctx workflow.Context) error {
	return showPhases(ctx, r.view.Phase, &r.in.ShownPhase, r.view.Velero.Phase, &r.in.ShownVeleroPhase)
}

// wait is a breath between steps, and shorter than any signal's way. It grows while nothing changes: something is held by
// somebody else, whose events are signals that a sleeper does not hear.
func (r *locationRun) wait(ctx workflow.Context) error {
	r.breath = min(2*r.breath, longestBreath)
	if r.view != r.waited {
		r.waited, r.breath = r.view, breather
	}
	details := "**Working:** " + locationSummaries[nextLocationStep(r.view)]
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
