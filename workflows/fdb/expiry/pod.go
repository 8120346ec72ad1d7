package expiry

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/details"
	"holdfast.dev/holdfast/workflows/entity"
)

const (
	// podLook is the first wait for news of a pod, podLookLongest the longest: the watcher tells of it sooner.
	podLook        = 15 * time.Second
	podLookLongest = time.Minute
	// podStartPatience is how long a pod may wait for its image, a node, a volume or an init container. Meanwhile nobody else has
	// the place.
	podStartPatience = 15 * time.Minute
	// podGonePatience is how long the next pod of a turn waits for the one before to be gone; then the turn ends without it.
	podGonePatience = time.Minute
	// closingAgain is how often the queue is told that only a pod in termination is left: it may have been lost meanwhile.
	closingAgain = 15 * time.Minute
	// defaultFDBExpiryTimeout is --fdb-expiry-timeout unless the worker says otherwise.
	defaultFDBExpiryTimeout = time.Hour
	// fdbExpiryLimitEffect names the side effect by which the limit in force enters the history.
	fdbExpiryLimitEffect = "fdb-expiry-timeout"
)

// limit is how long a pod may run. It goes through the history, so that a worker with another one can take over.
func (r *expiryRun) limit(ctx workflow.Context) time.Duration {
	limit := defaultFDBExpiryTimeout
	err := workflow.MutableSideEffect(ctx, fdbExpiryLimitEffect, func(workflow.Context) any {
		if r.options.FDBExpiryTimeout > 0 {
			return r.options.FDBExpiryTimeout
		}
		return defaultFDBExpiryTimeout
	}, func(a, b any) bool { return a == b }).Get(&limit)
	if err != nil {
		workflow.GetLogger(ctx).Error("limit in the history not readable, the default holds", "error", err)
	}
	return limit
}

// work has a pod do something and waits for its result, at most until its limit. Without a result it says why there is none. The
// pod may be there still.
func (r *expiryRun) work(ctx workflow.Context, step contract.FDBPodStep) (*contract.FDBPodResult, string, error) {
	step.Ref, step.Turn, step.Job = r.in.Ref, r.in.Turn, r.in.Job
	what := "expires the data"
	if step.Expire == nil {
		what = "deletes the data"
	}
	r.step = &contract.FDBPodStep{Ref: step.Ref, Turn: step.Turn, Number: step.Number}
	pod, err := call.LocalFirst(ctx, r.options.Limits, contract.ApplyFDBPod.WithSummary("Make the pod that "+what), step)
	if err != nil {
		return nil, "", err
	}
	r.pod = pod
	limit, created := r.limit(ctx), workflow.Now(ctx)
	if pod.Created != 0 {
		created = time.Unix(pod.Created, 0)
	}
	deadline := created.Add(limit)
	text := fmt.Sprintf("**Running:** pod `%s` %s. It is cut at %s.", details.OneLine(pod.Name), what,
		details.Stamp(deadline.Unix()))
	over := func() bool {
		return PodOver(r.pod) || (!r.pod.Started && !workflow.Now(ctx).Before(created.Add(podStartPatience)))
	}
	if err := r.look(ctx, *r.step, text, deadline, over); err != nil {
		return nil, "", err
	}
	if !r.pod.Started {
		limit = min(limit, podStartPatience)
	}
	return r.pod.Result, PodFailure(r.pod, limit), nil
}

func (r *expiryRun) gone() bool { return !r.pod.Found }

// look looks at a pod whenever something has happened to it, and from time to time, until it is as it shall be or the deadline
// has passed; the zero deadline never does.
func (r *expiryRun) look(
	ctx workflow.Context, step contract.FDBPodStep, text string, deadline time.Time, done func() bool,
) error {
	pause := podLook
	for !done() {
		shown := text
		if r.pod.Waiting != "" {
			shown += " It waits: " + details.OneLine(r.pod.Waiting)
		}
		workflow.SetCurrentDetails(ctx, shown)
		wait := pause
		if !deadline.IsZero() {
			wait = min(wait, deadline.Sub(workflow.Now(ctx)))
		}
		if wait <= 0 {
			return nil
		}
		if entity.Drain(r.changed) == 0 {
			if r.mayContinue && workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
				return r.goOn(ctx)
			}
			if err := r.wait(ctx, wait); err != nil {
				return err
			}
		}
		pause = min(2*pause, podLookLongest)
		if err := r.observe(ctx, step); err != nil {
			return err
		}
	}
	return nil
}

// goOn has another run wait on.
func (r *expiryRun) goOn(ctx workflow.Context) error {
	next := r.in
	next.Left = &contract.FDBExpiryLeft{
		Held: r.held, Unused: r.unused, Result: r.result, Pod: r.step, Closing: r.closing, Reported: r.reported,
	}
	return workflow.NewContinueAsNewError(ctx, contract.KindFDBExpiry.Workflow, next)
}

// wait blocks until a signal comes or the time is over.
func (r *expiryRun) wait(ctx workflow.Context, longest time.Duration) error {
	timing, cancel := workflow.WithCancel(ctx)
	defer cancel()
	selector := workflow.NewSelector(ctx)
	selector.AddReceive(r.changed, func(workflow.ReceiveChannel, bool) {})
	selector.AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) {})
	selector.AddFuture(workflow.NewTimer(timing, longest), func(workflow.Future) {})
	selector.Select(ctx)
	entity.Drain(r.changed)
	return ctx.Err()
}

// observe reads the pod live.
func (r *expiryRun) observe(ctx workflow.Context, step contract.FDBPodStep) error {
	pod, err := call.LocalFirst(ctx, r.options.Limits, contract.ObserveFDBPod, step)
	if err == nil {
		r.see(pod)
	}
	return err
}

// remove has the pod deleted. It may take its time to go. Its result goes with it: that must be known for good before.
func (r *expiryRun) remove(ctx workflow.Context, step contract.FDBPodStep) error {
	pod, err := call.Recorded(ctx, r.options.Limits, contract.DeleteFDBPod, step)
	if err == nil {
		r.see(pod)
	}
	return err
}

// see notes what there is of the pod. One that is gone keeps its name.
func (r *expiryRun) see(pod contract.FDBPodView) {
	if pod.Name == "" {
		pod.Name = r.pod.Name
	}
	r.pod = pod
}

// next waits for the pod before to be gone, so that another may be made, and reports whether it is in time.
func (r *expiryRun) next(ctx workflow.Context) (bool, error) {
	if err := r.remove(ctx, *r.step); err != nil {
		return false, err
	}
	text := fmt.Sprintf("**Waiting** for pod `%s` to be gone before the next one is made.", details.OneLine(r.pod.Name))
	if err := r.look(ctx, *r.step, text, workflow.Now(ctx).Add(podGonePatience), r.gone); err != nil || !r.gone() {
		return false, err
	}
	r.step = nil
	return true, nil
}
