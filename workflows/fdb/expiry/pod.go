package expiry

import (
	"cmp"
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/details"
	"holdfast.dev/holdfast/workflows/entity"
)

const (
	// podCheck is the first wait for a change of a pod, podCheckLongest the longest: the watcher signals it sooner.
	podCheck        = 15 * time.Second
	podCheckLongest = time.Minute
	// podStartPatience is how long a pod may wait for its image, a node, a volume or an init container. Meanwhile it takes a place
	// in the limit.
	podStartPatience = 15 * time.Minute
	// podGonePatience is how long the next pod of a turn waits until the previous one is gone; then the turn ends without it.
	podGonePatience = time.Minute
	// closingAgain is how often the queue gets the report that only a pod in termination is left: the queue may have been lost.
	closingAgain = 15 * time.Minute
	// defaultFDBExpiryTimeout is --fdb-expiry-timeout unless the worker says otherwise.
	defaultFDBExpiryTimeout = time.Hour
	// fdbExpiryLimitEffect names the side effect by which the limit in force enters the history.
	fdbExpiryLimitEffect = "fdb-expiry-timeout"
)

// limit returns how long a pod may run.
func (r *expiryRun) limit(ctx workflow.Context) time.Duration {
	return call.Flag(ctx, fdbExpiryLimitEffect, cmp.Or(max(0, r.options.FDBExpiryTimeout), defaultFDBExpiryTimeout),
		defaultFDBExpiryTimeout)
}

// work creates a pod and waits for its result, at most until its limit. Without a result it returns why there is none. The pod
// may still exist then.
func (r *expiryRun) work(ctx workflow.Context, step contract.FDBPodStep) (*contract.FDBPodResult, string, error) {
	step.Ref, step.Turn, step.Job = r.in.Ref, r.in.Turn, r.in.Job
	what := "expires the data"
	if step.Expire == nil {
		what = "deletes the data"
	}
	r.step = &contract.FDBPodStep{Ref: step.Ref, Turn: step.Turn, Number: step.Number}
	pod, err := call.LocalFirst(ctx, r.options.Limits, contract.ApplyFDBPod.WithSummary("Create the pod that "+what), step)
	if err != nil {
		return nil, "", err
	}
	r.pod = pod
	limit, created := r.limit(ctx), workflow.Now(ctx)
	if pod.Created != 0 {
		created = time.Unix(pod.Created, 0)
	}
	deadline := created.Add(limit)
	text := fmt.Sprintf("**Running:** pod `%s` %s. It must end by %s.", details.OneLine(pod.Name), what,
		details.Stamp(deadline.Unix()))
	over := func() bool {
		return PodOver(r.pod) || (!r.pod.Started && !workflow.Now(ctx).Before(created.Add(podStartPatience)))
	}
	if err := r.watch(ctx, *r.step, text, deadline, over); err != nil {
		return nil, "", err
	}
	if !r.pod.Started {
		limit = min(limit, podStartPatience)
	}
	return r.pod.Result, PodFailure(r.pod, limit), nil
}

func (r *expiryRun) gone() bool { return !r.pod.Found }

// watch reads a pod whenever something has happened to it, and at intervals, until done returns true or the deadline has passed;
// the zero deadline never passes.
func (r *expiryRun) watch(
	ctx workflow.Context, step contract.FDBPodStep, text string, deadline time.Time, done func() bool,
) error {
	pause := podCheck
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
		pause = min(2*pause, podCheckLongest)
		if err := r.observe(ctx, step); err != nil {
			return err
		}
	}
	return nil
}

// goOn continues the wait in another run.
func (r *expiryRun) goOn(ctx workflow.Context) error {
	next := r.in
	next.Carried = &contract.FDBExpiryCarried{
		Held: r.held, Unused: r.unused, Result: r.result, Pod: r.step, Closing: r.closing, Reported: r.reported,
	}
	return workflow.NewContinueAsNewError(ctx, contract.KindFDBExpiry.Workflow, next)
}

// wait blocks until a signal comes or the time has passed.
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

// remove deletes the pod, which may take time. Its result goes with it, and must be in the history before.
func (r *expiryRun) remove(ctx workflow.Context, step contract.FDBPodStep) error {
	pod, err := call.Recorded(ctx, r.options.Limits, contract.DeleteFDBPod, step)
	if err == nil {
		r.see(pod)
	}
	return err
}

// see keeps the pod's view. A pod that is gone keeps its name.
func (r *expiryRun) see(pod contract.FDBPodView) {
	pod.Name = cmp.Or(pod.Name, r.pod.Name)
	r.pod = pod
}

// next waits until the previous pod is gone, so that another may be created, and reports whether that was in time.
func (r *expiryRun) next(ctx workflow.Context) (bool, error) {
	if err := r.remove(ctx, *r.step); err != nil {
		return false, err
	}
	text := fmt.Sprintf("**Waiting** for pod `%s` to be gone before the next one is created.", details.OneLine(r.pod.Name))
	if err := r.watch(ctx, *r.step, text, workflow.Now(ctx).Add(podGonePatience), r.gone); err != nil || !r.gone() {
		return false, err
	}
	r.step = nil
	return true, nil
}
