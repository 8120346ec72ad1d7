package entity

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
)

const (
	// maxStepsInRow limits local activities between two waits: they all run again after a kill.
	maxStepsInRow = 4
	// Pause is the wait after that many steps.
	Pause = time.Second
)

// Run is one run of a workflow that serves an object. Nothing in it outlives the run but In.
type Run[In Input, Args, View any] struct {
	In      In
	Options call.Options
	// View is the object as it was last read, once it is Known.
	View  View
	Known bool
	// Changed has the signals of all kinds, Others those of this one.
	Changed workflow.ReceiveChannel
	Others  []workflow.ReceiveChannel
	// Waiters are what ends a wait besides signals.
	Waiters []Waiter

	// The hooks. The kind's Begin may replace them, but for Passed, which is nil if nothing is to be done.

	// First returns the step that begins a pass.
	First func(workflow.Context) contract.Activity[Args, View]
	// Do takes a step and returns the object after it.
	Do func(workflow.Context, contract.Activity[Args, View]) (View, error)
	// Passed is called after the steps of a pass, before the result is shown.
	Passed func(workflow.Context) error
	// Pass reads the present state, takes the steps that are due, and shows the result. It reports whether the object is settled.
	Pass func(workflow.Context) (settled bool, err error)
	// Drain receives the signals that have arrived, without blocking, and returns how many there are.
	Drain func() int
	// Wait blocks until a signal comes or something is due without one. It leaves the signal to Drain.
	Wait func(workflow.Context) error
	// State answers contract.QueryState.
	State func() any

	kind Kind[In, Args, View]
}

// serve serves an object until it is settled, or the run fails or is cancelled.
func (r *Run[In, Args, View]) serve(ctx workflow.Context) error {
	for {
		r.Drain()
		settled, err := r.Pass(ctx)
		if err != nil {
			return err
		}
		info := workflow.GetInfo(ctx)
		if !settled && !info.GetContinueAsNewSuggested() {
			if err := r.Wait(ctx); err != nil {
				return err
			}
			continue
		}
		if err := workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) }); err != nil {
			return err
		}
		// Nothing may yield between an empty drain and the return: an event that came meanwhile would be lost.
		switch {
		case r.Drain() > 0:
		case settled:
			return nil
		default:
			return workflow.NewContinueAsNewError(ctx, info.WorkflowType.Name, r.In)
		}
	}
}

func (r *Run[In, Args, View]) pass(ctx workflow.Context) (settled bool, err error) {
	settled, err = r.Steps(ctx)
	if err == nil && r.Passed != nil {
		err = r.Passed(ctx)
	}
	if err == nil {
		err = r.Show(ctx)
	}
	return settled, err
}

// Steps reads the object and takes the steps that are due, until it is settled or waits, or until the history is long while steps
// repeat without an end.
func (r *Run[In, Args, View]) Steps(ctx workflow.Context) (settled bool, err error) {
	step := r.First(ctx)
	for taken := 1; ; taken++ {
		if err := r.Act(ctx, step); err != nil {
			return false, err
		}
		next, due := r.Due()
		if !due {
			return r.Settled(), nil
		}
		step = next
		if taken%maxStepsInRow != 0 {
			continue
		}
		if err := workflow.Sleep(ctx, Pause); err != nil {
			return false, err
		}
		if workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
			return false, nil
		}
	}
}

// Act takes a step.
func (r *Run[In, Args, View]) Act(ctx workflow.Context, step contract.Activity[Args, View]) error {
	return r.See(r.Do(ctx, step))
}

// See keeps the view that an activity has returned.
func (r *Run[In, Args, View]) See(view View, err error) error {
	if err == nil {
		r.View, r.Known = view, true
	}
	return err
}

// Settled reports whether nothing is to be done until somebody changes something.
func (r *Run[In, Args, View]) Settled() bool { return r.kind.Settled(r.View) }

// Due returns the next step, if one is due.
func (r *Run[In, Args, View]) Due() (step contract.Activity[Args, View], due bool) {
	if !r.Settled() {
		step = r.kind.Next(r.View)
	}
	return step, step.Name != ""
}

// Show shows the phases as search attributes.
func (r *Run[In, Args, View]) Show(ctx workflow.Context) error {
	if r.kind.Phases == nil {
		return nil
	}
	phase, veleroPhase := r.kind.Phases(r.View)
	return Show(ctx, r.In.Object(), phase, veleroPhase)
}
