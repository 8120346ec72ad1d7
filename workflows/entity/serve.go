package entity

import "go.temporal.io/sdk/workflow"

// Outcome is what a pass leaves to be done.
type Outcome int

const (
	// Waiting is until a signal comes, or it is time to look again.
	Waiting Outcome = iota
	// Settled is nothing, until somebody changes something. The run ends; the next event starts another one.
	Settled
)

// Object is how a run serves an object.
type Object interface {
	// Drain takes the signals that have come, without blocking, and returns how many there are.
	Drain() int
	// Pass reads the present state, takes the steps that are due, and shows what came of them.
	Pass(ctx workflow.Context) (Outcome, error)
	// Wait blocks until a signal comes or it is time to look again. It leaves the signal to Drain.
	Wait(ctx workflow.Context) error
	// Carry is the input of the run that goes on when the history has become long: all that outlives a run.
	Carry() any
}

// Serve serves an object until it is settled, or the run fails or is cancelled.
func Serve(ctx workflow.Context, object Object) error {
	for {
		object.Drain()
		outcome, err := object.Pass(ctx)
		if err != nil {
			return err
		}
		info := workflow.GetInfo(ctx)
		if outcome == Waiting && !info.GetContinueAsNewSuggested() {
			if err := object.Wait(ctx); err != nil {
				return err
			}
			continue
		}
		if err := workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) }); err != nil {
			return err
		}
		// From an empty drain to the return nothing may yield: an event that came meanwhile would be lost.
		switch {
		case object.Drain() > 0:
		case outcome == Settled:
			return nil
		default:
			return workflow.NewContinueAsNewError(ctx, info.WorkflowType.Name, object.Carry())
		}
	}
}
