package container

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/details"
	"holdfast.dev/holdfast/workflows/fdb/cluster"
	"holdfast.dev/holdfast/workflows/kinds"
	"holdfast.dev/holdfast/workflows/turns"
)

// Kind is how the workflow is run.
var Kind = kinds.Kind{
	Kind: contract.KindFDBContainer, Activities: contract.Names(contract.RequestFDBContainer),
	Run: func(call.Options) any { return Workflow },
}

// Workflow guards one container of FoundationDB backups, whichever Kubernetes clusters have to do with it: who expires it or
// deletes it does so alone, not while a restore reads it, and nobody deletes what others use. It ends when nobody uses or holds
// the container and nobody has asked for a while; the next one to ask starts it again.
func Workflow(ctx workflow.Context, in contract.FDBContainerInput) error {
	run := &containerRun{
		guard: guard{FDBContainerInput: in, known: in.Since != 0, blamed: map[string]bool{}}, heardAt: workflow.Now(ctx),
		closed: map[string]time.Time{},
	}
	if in.Since == 0 {
		run.guard.Since = workflow.Now(ctx).Unix()
	}
	err := workflow.SetQueryHandler(ctx, contract.QueryState, func() (contract.FDBContainerState, error) {
		return contract.FDBContainerState{Users: run.guard.Users, Holder: run.guard.Holder, Settled: run.guard.Settled}, nil
	})
	if err != nil {
		return err
	}
	err = workflow.SetUpdateHandlerWithOptions(ctx, contract.UpdateFDBContainer, run.ask, workflow.UpdateHandlerOptions{
		Validator:   run.validate,
		Description: "Say who uses the container, or have it alone to expire or delete it",
	})
	if err != nil {
		return err
	}
	return run.serve(ctx)
}

// containerRun is the state of one run. Nothing in it outlives the run but what FDBContainerInput carries over.
type containerRun struct {
	guard   guard
	heardAt time.Time // when somebody asked last
	// wake is the timer of the next moment, wakeAt, at which something changes by itself; nil if there is none.
	wake   workflow.Future
	wakeAt time.Time
	cancel workflow.CancelFunc

	census turns.Census
	closed map[string]time.Time // since when the workflow of somebody blamed is known not to run
}

func (r *containerRun) serve(ctx workflow.Context) error {
	for {
		r.guard.pass(workflow.Now(ctx).Unix())
		r.prune(ctx)
		r.attend(ctx)
		r.show(ctx)
		// From here to the return nothing may yield: an ask that came meanwhile would not be answered.
		if r.atRest(ctx) {
			switch {
			case r.deserted(ctx):
				return nil
			case workflow.GetInfo(ctx).GetContinueAsNewSuggested():
				return workflow.NewContinueAsNewError(ctx, contract.KindFDBContainer.Workflow, r.guard.FDBContainerInput)
			}
		}
		if err := workflow.Await(ctx, func() bool { return r.due(ctx) }); err != nil {
			return err
		}
	}
}

// due reports whether serve has something to do.
func (r *containerRun) due(ctx workflow.Context) bool {
	ends := workflow.GetInfo(ctx).GetContinueAsNewSuggested() || r.deserted(ctx)
	looks := len(r.suspects(ctx)) > 0 && !r.census.Planned() && !r.census.Busy()
	next, is := r.next()
	return r.census.Ready() || looks || (ends && r.atRest(ctx)) ||
		(is && (r.wake == nil || r.wake.IsReady() || next.Before(r.wakeAt)))
}

// atRest: nobody waits for anything of this run.
func (r *containerRun) atRest(ctx workflow.Context) bool {
	return workflow.AllHandlersFinished(ctx) && !r.census.Busy()
}

// deserted: nobody uses or holds the container, and nobody has asked for a while.
func (r *containerRun) deserted(ctx workflow.Context) bool {
	return r.guard.free() && workflow.Now(ctx).Sub(r.heardAt) >= cluster.FDBClusterIdle
}

// next is the next moment at which something changes by itself: a user has had the time to read, or the guard is deserted.
func (r *containerRun) next() (time.Time, bool) {
	if r.guard.free() {
		return r.heardAt.Add(cluster.FDBClusterIdle), true
	}
	if until := r.guard.firstEnd(); until > 0 {
		return time.Unix(until, 0), true
	}
	return time.Time{}, false
}

// attend has the run wake at the next such moment. A timer that is early is let run: it costs less than another one.
func (r *containerRun) attend(ctx workflow.Context) {
	if r.wake != nil && r.wake.IsReady() {
		r.wake = nil
	}
	next, is := r.next()
	if !is || (r.wake != nil && !next.Before(r.wakeAt)) || r.deserted(ctx) {
		return
	}
	if r.wake != nil {
		r.cancel()
	}
	timing, cancel := workflow.WithCancel(ctx)
	r.wakeAt, r.cancel = next, cancel
	r.wake = workflow.NewTimer(timing, max(next.Sub(workflow.Now(ctx)), time.Second))
}

// validate refuses what can never be answered. It leaves no trace in the history.
func (r *containerRun) validate(ask contract.FDBContainerRequest) error {
	refuse := func(format string, args ...any) error {
		return temporal.NewNonRetryableApplicationError(fmt.Sprintf(format, args...), contract.ErrorFDBContainerInvalid, nil)
	}
	switch {
	case ask.Container != r.guard.Container:
		return refuse("container: %q was asked of the guard of %q", ask.Container, r.guard.Container)
	case ask.User.WorkflowID == "" || ask.User.Name == "":
		return refuse("user: want its workflow ID and its name")
	case ask.User.ReadsUntil < 0:
		return refuse("user: readsUntil is before all times")
	}
	switch ask.Action {
	case contract.FDBContainerUse, contract.FDBContainerLeave, contract.FDBContainerRelease:
		return nil
	case contract.FDBContainerExpire, contract.FDBContainerDelete:
		if ask.Of == "" {
			return refuse("of: want the workflow ID of the user for whom to %s", ask.Action)
		}
		return nil
	}
	return refuse("action: unknown %q", ask.Action)
}

// ask handles UpdateFDBContainer. It never waits: who is refused asks again.
func (r *containerRun) ask(ctx workflow.Context, ask contract.FDBContainerRequest) (contract.FDBContainerAnswer, error) {
	r.heardAt = workflow.Now(ctx)
	r.census.Hear(ask.User.WorkflowID)
	delete(r.closed, ask.User.WorkflowID)
	answer := r.guard.take(ask, r.heardAt.Unix())
	r.show(ctx)
	return answer, nil
}

// suspects are those of whom it is to be found out whether they run. A run that is to end asks no more.
func (r *containerRun) suspects(ctx workflow.Context) []string {
	if workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
		return nil
	}
	return r.guard.suspects()
}

// prune drops those that stand in others' way and whose workflow was found not to run for contract.FDBContainerSettling: one that
// was ended by hand is started again by its queue or its watcher in time, and goes on. One that runs is not looked after any more
// until it is in somebody's way again.
func (r *containerRun) prune(ctx workflow.Context) {
	found := r.census.Advance(ctx, turns.CensusInterval, r.suspects(ctx))
	for _, id := range found.Running {
		delete(r.closed, id)
		delete(r.guard.blamed, id)
	}
	for _, id := range found.Closed {
		since, known := r.closed[id]
		switch {
		case !known:
			r.closed[id] = workflow.Now(ctx)
		case workflow.Now(ctx).Sub(since) >= contract.FDBContainerSettling:
			delete(r.closed, id)
			r.guard.drop(id)
		}
	}
	for _, id := range workflow.DeterministicKeys(r.closed) {
		if !r.guard.blamed[id] {
			delete(r.closed, id)
		}
	}
}

// show says in Markdown who holds the container, and who uses it.
func (r *containerRun) show(ctx workflow.Context) {
	guard := &r.guard
	text := fmt.Sprintf("Container `%s`.\n\n", details.OneLine(guard.Container))
	switch {
	case guard.Holder != nil:
		text += fmt.Sprintf("**Held** by %s since %s, which %s. Others wait until it says that it is done.\n",
			details.OneLine(guard.Holder.Name), details.Stamp(guard.Holder.Since), guard.doing())
	case guard.free():
		text += fmt.Sprintf("**Nobody uses it:** ends at %s if nobody asks.\n",
			details.Stamp(r.heardAt.Add(cluster.FDBClusterIdle).Unix()))
	default:
		text += "**Waiting** for somebody to expire or delete it.\n"
	}
	if at := guard.settledAt(); !guard.Settled && at > r.heardAt.Unix() {
		text += fmt.Sprintf("\n**Settling:** nobody may delete it before %s, so that everybody who uses it has said so.\n",
			details.Stamp(at))
	}
	text += turns.Listed("Its users:", guard.Users, len(guard.Users), func(user contract.FDBContainerUser) string {
		if user.ReadsUntil != 0 {
			return "- " + details.OneLine(user.Name) + ", which reads it until " + details.Stamp(user.ReadsUntil)
		}
		return "- " + details.OneLine(user.Name)
	})
	workflow.SetCurrentDetails(ctx, text)
}
