package entity

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/contract"
)

const (
	// maxStepsInRow limits local activities between two waits: they all run again after a kill.
	maxStepsInRow = 4
	// Pause is the wait after that many steps.
	Pause = time.Second
)

// Step is what an object needs next.
type Step struct {
	// Activity does it, by its name on the wire. Without one it is not Take's to do.
	Activity string
	// Summary is what the Web UI shows of the activity, or names the step if there is none.
	Summary string
}

// Steps makes the steps of a kind whose activities all take In and return the View after their effect.
type Steps[In, View any] struct{}

// Act is a step that an activity does.
func (Steps[In, View]) Act(activity contract.Activity[In, View]) Step {
	return Step{activity.Name, activity.Summary}
}

// Activity is the one that does a step.
func (Steps[In, View]) Activity(step Step) contract.Activity[In, View] {
	return contract.Activity[In, View]{Name: step.Activity, Summary: step.Summary}
}

var (
	// Wait is nothing to do until a signal or its time comes.
	Wait = Step{Summary: "wait"}
	// Settle is nothing to do until somebody changes something.
	Settle = Step{Summary: "settle"}
)

// String implements fmt.Stringer.
func (s Step) String() string {
	if s.Activity == "" {
		return s.Summary
	}
	return s.Activity
}

// Course is how an object is served whose next step follows from its present state.
type Course[View any] struct {
	// Read is the step that only reads.
	Read Step
	// Next decides.
	Next func(View) Step
	// Do takes a step and returns the state after it.
	Do func(workflow.Context, Step) (View, error)
}

// Take reads the object and takes the steps that are due. It returns the first that has no activity, or Wait when steps come to
// nothing again and again: they must not fill the history.
func (c Course[View]) Take(ctx workflow.Context) (Step, error) {
	step := c.Read
	for taken := 1; ; taken++ {
		view, err := c.Do(ctx, step)
		if err != nil {
			return Step{}, err
		}
		if step = c.Next(view); step.Activity == "" {
			return step, nil
		}
		if taken%maxStepsInRow != 0 {
			continue
		}
		if err := workflow.Sleep(ctx, Pause); err != nil {
			return Step{}, err
		}
		if workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
			return Wait, nil
		}
	}
}

// OutcomeOf is what a pass leaves whose steps have ended with that one.
func OutcomeOf(step Step) Outcome {
	if step == Settle {
		return Settled
	}
	return Waiting
}
