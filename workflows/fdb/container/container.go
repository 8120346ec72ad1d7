package container

import (
	"errors"
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

// Workflow guards one container of FoundationDB backups, for all Kubernetes clusters that use it: a workflow that expires or
// deletes it does so alone, not while a restore reads it, and data that others use are not deleted. It ends when there are no
// users and no holder, and no request has come for a while; the next request starts it again.
func Workflow(ctx workflow.Context, in contract.FDBContainerInput) error {
	run := &containerRun{
		guard: guard{FDBContainerInput: in, known: in.Since != 0, blamed: map[string]bool{}}, lastRequest: workflow.Now(ctx),
	}
	if in.Since == 0 {
		run.guard.Since = workflow.Now(ctx).Unix()
	}
	err := errors.Join(
		workflow.SetQueryHandler(ctx, contract.QueryState, func() (contract.FDBContainerState, error) {
			return contract.FDBContainerState{Users: run.guard.Users, Holder: run.guard.Holder, Settled: run.guard.Settled}, nil
		}),
		workflow.SetUpdateHandlerWithOptions(ctx, contract.UpdateFDBContainer, run.request, workflow.UpdateHandlerOptions{
			Validator:   run.validate,
			Description: "Enter a user of the container, or hold it alone to expire or delete it",
		}))
	if err != nil {
		return err
	}
	return turns.Loop{
		Pass: run.pass, Due: run.due, AtRest: func() bool { return !run.census.Busy() }, Deserted: run.deserted, Next: run.handOver,
	}.Serve(ctx)
}

// containerRun is the state of one run. Nothing in it outlives the run except what FDBContainerInput hands over.
type containerRun struct {
	guard       guard
	lastRequest time.Time // when the last request came
	// wake is the timer for wakeAt, the next time at which something changes by itself; nil if there is none.
	wake   workflow.Future
	wakeAt time.Time
	cancel workflow.CancelFunc
	census turns.Census
}

func (r *containerRun) pass(ctx workflow.Context) error {
	r.guard.advance(workflow.Now(ctx).Unix())
	r.prune(ctx)
	r.attend(ctx)
	r.show(ctx)
	return nil
}

// due reports whether there is something for a pass.
func (r *containerRun) due(ctx workflow.Context) bool {
	check := len(r.suspects(ctx)) > 0 && !r.census.Planned() && !r.census.Busy()
	next, is := r.next()
	return r.census.Ready() || check || (is && !r.deserted(ctx) && (r.wake == nil || r.wake.IsReady() || next.Before(r.wakeAt)))
}

// handOver hands everything over to the next run.
func (r *containerRun) handOver(ctx workflow.Context) error {
	return workflow.NewContinueAsNewError(ctx, contract.KindFDBContainer.Workflow, r.guard.FDBContainerInput)
}

// deserted: there are no users and no holder, and no request has come for a while.
func (r *containerRun) deserted(ctx workflow.Context) bool {
	return r.guard.free() && workflow.Now(ctx).Sub(r.lastRequest) >= cluster.FDBClusterIdle
}

// next returns the next time at which something changes by itself: a reader's time ends, or the guard is deserted.
func (r *containerRun) next() (time.Time, bool) {
	if r.guard.free() {
		return r.lastRequest.Add(cluster.FDBClusterIdle), true
	}
	if until := r.guard.firstEnd(); until > 0 {
		return time.Unix(until, 0), true
	}
	return time.Time{}, false
}

// attend sets the timer for that time. A timer that fires earlier is kept: it costs less than another one.
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

// validate refuses requests that can never be answered. They leave no trace in the history.
func (r *containerRun) validate(request contract.FDBContainerRequest) error {
	refuse := func(format string, args ...any) error {
		return temporal.NewNonRetryableApplicationError(fmt.Sprintf(format, args...), contract.ErrorFDBContainerInvalid, nil)
	}
	switch {
	case request.Container != r.guard.Container:
		return refuse("container: the request for %q was sent to the guard of %q", request.Container, r.guard.Container)
	case request.User.WorkflowID == "" || request.User.Name == "":
		return refuse("user: must have a workflow ID and a name")
	case request.User.ReadsUntil < 0:
		return refuse("user: readsUntil must not be negative")
	}
	switch request.Action {
	case contract.FDBContainerUse, contract.FDBContainerLeave, contract.FDBContainerRelease:
		return nil
	case contract.FDBContainerExpire, contract.FDBContainerDelete:
		if request.Of == "" {
			return refuse("of: must be the workflow ID of the user whose data to %s", request.Action)
		}
		return nil
	}
	return refuse("action: unknown %q", request.Action)
}

// request handles UpdateFDBContainer. It never waits: a user that is refused sends its request again.
func (r *containerRun) request(ctx workflow.Context, request contract.FDBContainerRequest) (contract.FDBContainerAnswer, error) {
	r.lastRequest = workflow.Now(ctx)
	r.census.NoteMessage(request.User.WorkflowID)
	answer := r.guard.answer(request, r.lastRequest.Unix())
	r.show(ctx)
	return answer, nil
}

// suspects returns the workflows to check. A run that is about to end checks none.
func (r *containerRun) suspects(ctx workflow.Context) []string {
	if workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
		return nil
	}
	return r.guard.suspects()
}

// prune drops blamed users whose workflow was found not to run for contract.FDBContainerSettling: a workflow that was ended by
// hand is started again by its queue or its watcher within that time, and goes on. A user whose workflow runs is not checked any
// more until another is refused because of it.
func (r *containerRun) prune(ctx workflow.Context) {
	running, gone := r.census.Gone(ctx, contract.FDBContainerSettling, r.suspects(ctx))
	for _, id := range running {
		delete(r.guard.blamed, id)
	}
	for _, id := range gone {
		r.guard.drop(id)
	}
}

// show shows in Markdown who holds the container, and who uses it.
func (r *containerRun) show(ctx workflow.Context) {
	guard := &r.guard
	text := fmt.Sprintf("Container `%s`.\n\n", details.OneLine(guard.Container))
	switch {
	case guard.Holder != nil:
		text += fmt.Sprintf("**Held** by %s since %s, which %s. Others wait until it has finished.\n",
			details.OneLine(guard.Holder.Name), details.Stamp(guard.Holder.Since), guard.doing())
	case guard.free():
		text += fmt.Sprintf("**Without users:** ends at %s unless a request arrives.\n",
			details.Stamp(r.lastRequest.Add(cluster.FDBClusterIdle).Unix()))
	default:
		text += "**Waiting** for requests to expire or delete it.\n"
	}
	if at := guard.settledAt(); !guard.Settled && at > r.lastRequest.Unix() {
		text += fmt.Sprintf("\n**Settling:** it is not deleted before %s. By then all its users are known.\n",
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
