package entity

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
)

// Input starts a run, and is what it hands over to the next.
type Input interface {
	// Object is the part that all kinds have.
	Object() *contract.ObjectInput
}

// Kind is how objects of one kind are served. Its activities get an Args, and return the View after their effect. Settled, Next
// and Awaited are pure functions of a view. They run inside workflows: another result for the same view breaks the replay of
// histories.
type Kind[In Input, Args, View any] struct {
	contract.Kind
	// Read is the activity that reads the object, and Activities are the others that were made for the kind.
	Read       contract.Activity[Args, View]
	Activities []string
	// Args is the input of the activities, unless Begin sets Do.
	Args func(In) Args
	// Settled reports whether nothing is to be done until somebody changes something: the run ends, and the next event starts
	// another one.
	Settled func(View) bool
	// Next is the activity that is due for an object that is not settled; the zero value if it waits for a signal or a timer. It
	// is nil if Begin sets Pass.
	Next func(View) contract.Activity[Args, View]
	// Awaited says in Markdown what an object waits for, and who must act. It is nil if the passes show that.
	Awaited func(View) string
	// Phases are the search attributes of an object; an empty one is left as it is. It is nil for a kind without
	// phases, and if the passes show them.
	Phases func(View) (phase, veleroPhase string)
	// Reread is how long the object is not read again without a signal; zero if Begin says what ends a wait.
	Reread time.Duration
	// Begin sets the hooks of a run. It is nil for a kind that needs none.
	Begin func(workflow.Context, *Run[In, Args, View]) error
	// Waits is the view of an object that waits, for the tests of all kinds.
	Waits View
}

// Run returns the function of the workflow.
func (k Kind[In, Args, View]) Run(options call.Options) any {
	return func(ctx workflow.Context, in In) error {
		r := &Run[In, Args, View]{
			In: in, Options: options, Changed: workflow.GetSignalChannel(ctx, contract.SignalChanged), kind: k,
		}
		r.First = func(workflow.Context) contract.Activity[Args, View] { return k.Read }
		r.Do = func(ctx workflow.Context, step contract.Activity[Args, View]) (View, error) {
			return call.LocalFirst(ctx, options.Limits, step, k.Args(in))
		}
		r.Drain = func() int { return Drain(r.Changed) }
		r.Pass, r.Wait = r.pass, r.Block
		r.State = func() any { return contract.State[View]{View: r.View} }
		if k.Reread > 0 {
			r.Waiters = []Waiter{Every(k.Reread, func(workflow.Context) {})}
		}
		if k.Begin != nil {
			if err := k.Begin(ctx, r); err != nil {
				return err
			}
		}
		err := workflow.SetQueryHandler(ctx, contract.QueryState, func() (any, error) { return r.State(), nil })
		if err != nil {
			return err
		}
		return r.serve(ctx)
	}
}
