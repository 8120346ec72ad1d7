package entity

import "encoding/json"

// Decisions are what follows from the view of an object, and from nothing else. They run inside workflows: another answer for a
// view is another history.
type Decisions[View any] struct {
	// Next is the step that is due: Settle exactly when it is Settled. Nil where more than the view decides.
	Next func(View) Step
	// Settled reports whether nothing is to be done until somebody changes something.
	Settled func(View) bool
	// Awaited says in Markdown what an object waits for, and from whom. Nil where more than the view tells.
	Awaited func(View) string
}

// Decided is what follows from one view.
type Decided struct {
	Next    Step
	Settled bool
	Awaited string
}

// Decider is Decisions of whatever View.
type Decider interface {
	// On decides on a view as the wire carries it.
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
