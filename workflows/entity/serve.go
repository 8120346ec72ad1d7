package entity

import "go.temporal.io/sdk/workflow"

// Outcome is the state of an object after a pass.
type Outcome int

const (
	// Waiting says that the run waits until a signal comes or the next re-read is due.
	Waiting Outcome = iota
	// Settled says that nothing is due until somebody changes something. The run ends; the next event starts another one.
	Settled
)

// Object is how a run serves an object.
type Object interface {
	// Drain receives the signals that have arrived, without blocking, and returns how many there are.
	Drain() int
	// Pass reads the present state, takes the steps that are due, and shows the result.
	Pass(ctx workflow.Context) (Outcome, error)
	// Wait blocks until a signal comes or the next re-read is due. It leaves the signal to Drain.
	Wait(ctx workflow.Context) error
	// Carry is the input of the next run if the history has become long: all that outlives a run.
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
		// Nothing may yield between an empty drain and the return: an event that came meanwhile would be lost.
		switch {
		case object.Drain() > 0:
		case outcome == Settled:
			return nil
		default:
			return workflow.NewContinueAsNewError(ctx, info.WorkflowType.Name, object.Carry())
		}
	}
}
