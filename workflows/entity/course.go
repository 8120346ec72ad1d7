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
	// Activity does it, by its wire name. A step without one is not for Take.
	Activity string
	// Summary is the activity's summary in the Web UI, or the name of a step without an activity.
	Summary string
}

// Steps makes the steps of a kind whose activities all take In and return the View after their effect.
type Steps[In, View any] struct{}

// Act is a step that the activity does.
func (Steps[In, View]) Act(activity contract.Activity[In, View]) Step {
	return Step{activity.Name, activity.Summary}
}

// Activity is the activity of a step.
func (Steps[In, View]) Activity(step Step) contract.Activity[In, View] {
	return contract.Activity[In, View]{Name: step.Activity, Summary: step.Summary}
}

var (
	// Wait says that nothing is due until a signal comes or a timer fires.
	Wait = Step{Summary: "wait"}
	// Settle says that nothing is due until somebody changes something.
	Settle = Step{Summary: "settle"}
)

// String implements fmt.Stringer.
func (s Step) String() string {
	if s.Activity == "" {
		return s.Summary
	}
	return s.Activity
}

// Course serves an object whose next step follows from its present state.
type Course[View any] struct {
	// Read is the step that only reads.
	Read Step
	// Next decides on the next step.
	Next func(View) Step
	// Do takes a step and returns the state after it.
	Do func(workflow.Context, Step) (View, error)
}

// Take reads the object and takes the steps that are due. It returns the first step without an activity, or Wait if steps
// repeat without an end: they must not fill the history.
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

// OutcomeOf is the outcome of a pass that has ended with this step.
func OutcomeOf(step Step) Outcome {
	if step == Settle {
		return Settled
	}
	return Waiting
}
