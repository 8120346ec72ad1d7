package entity

import "encoding/json"

// Decisions are pure functions of an object's view. They run inside workflows: another result for the same view breaks the
// replay of histories.
type Decisions[View any] struct {
	// Next is the step that is due: Settle exactly when it is Settled. It is nil if the view alone does not decide.
	Next func(View) Step
	// Settled reports whether nothing is to be done until somebody changes something.
	Settled func(View) bool
	// Awaited says in Markdown what an object waits for, and who must act. It is nil if the view alone is not enough.
	Awaited func(View) string
}

// Decided is the result of Decisions for one view.
type Decided struct {
	Next    Step
	Settled bool
	Awaited string
}

// Decider is Decisions for any type of View.
type Decider interface {
	// On decides on a view as encoded on the wire.
	On(view json.RawMessage) (Decided, error)
}

// On implements Decider.
func (d Decisions[View]) On(view json.RawMessage) (decided Decided, err error) {
	var v View
	if err := json.Unmarshal(view, &v); err != nil {
		return decided, err
	}
	decided.Settled = d.Settled(v)
	if d.Next != nil {
		decided.Next = d.Next(v)
	}
	if d.Awaited != nil {
		decided.Awaited = d.Awaited(v)
	}
	return decided, nil
}
