package turns

import "go.temporal.io/sdk/workflow"

// Loop serves requests for as long as somebody needs the run. No request is lost: the run ends, or continues as new, only when
// none is under way and nothing is due.
type Loop struct {
	// Pass does what is due, and sets the timers for what is due later. It does not yield after that.
	Pass func(workflow.Context) error
	// Due reports whether there is something to do for a pass.
	Due func(workflow.Context) bool
	// AtRest reports whether the run waits for nothing that it has begun. Serve itself waits for the handlers of Updates.
	AtRest func() bool
	// Deserted reports whether nobody needs the run any more.
	Deserted func(workflow.Context) bool
	// Next returns the error by which the run continues as new.
	Next func(workflow.Context) error
}

// Serve runs the loop.
func (l Loop) Serve(ctx workflow.Context) error {
	// A cancellation ends timers: they are due, and so is each that is set after it. A pass would follow the other for ever.
	due := func() bool { return ctx.Err() == nil && l.Due(ctx) }
	atRest := func() bool { return workflow.AllHandlersFinished(ctx) && l.AtRest() }
	for {
		if err := l.Pass(ctx); err != nil {
			return err
		}
		// From here to the return nothing may yield: a request that arrives meanwhile would be lost.
		if !due() && atRest() {
			switch {
			case l.Deserted(ctx):
				return nil
			case workflow.GetInfo(ctx).GetContinueAsNewSuggested():
				return l.Next(ctx)
			}
		}
		err := workflow.Await(ctx, func() bool {
			ends := l.Deserted(ctx) || workflow.GetInfo(ctx).GetContinueAsNewSuggested()
			return due() || (ends && atRest())
		})
		if err != nil {
			return err
		}
	}
}
