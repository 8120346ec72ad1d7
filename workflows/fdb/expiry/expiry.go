package expiry

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/details"
	"holdfast.dev/holdfast/workflows/entity"
	"holdfast.dev/holdfast/workflows/kinds"
)

// Kind is how the workflow is run.
var Kind = kinds.Kind{
	Kind: contract.KindFDBExpiry,
	Activities: contract.Names(
		contract.PlanFDBExpiry, contract.ApplyFDBPod, contract.ObserveFDBPod, contract.DeleteFDBPod, contract.ReportFDBTurn,
	),
	Run: kinds.Serving(Workflow),
}

// Workflow is one turn of a FoundationDBBackup in the queue of expirations: it holds the container alone, runs a pod that expires
// or deletes data, and reports to the backup and the queue how that ended. Before it reports its end, its pods are gone and its
// containers released, no matter what has happened: there are never two pods for one backup. A turn that is run again repeats
// nothing.
func Workflow(ctx workflow.Context, in contract.FDBExpiryInput, options call.Options) error {
	run := &expiryRun{in: in, options: options, changed: workflow.GetSignalChannel(ctx, contract.SignalChanged)}
	err := workflow.SetQueryHandler(ctx, contract.QueryState, func() (contract.FDBExpiryState, error) {
		return contract.FDBExpiryState{Input: run.in, Plan: run.plan, Pod: run.pod}, nil
	})
	if err != nil {
		return err
	}
	return run.serve(ctx)
}

// expiryRun is the state of one run. Nothing in it outlives the run except what FDBExpiryInput hands over.
type expiryRun struct {
	in      contract.FDBExpiryInput
	options call.Options
	changed workflow.ReceiveChannel
	plan    contract.FDBExpiryPlan
	// pod is the last view of the pod that step names; step is nil if no pod of this turn can exist.
	pod  contract.FDBPodView
	step *contract.FDBPodStep
	// held are the containers that this turn may hold.
	held []contract.FDBPlace
	// unused are the containers that the backup no longer uses.
	unused []contract.FDBPlace
	// mayContinue: the present wait may last for ever, and another run can continue it.
	mayContinue bool
	// result is how the turn has ended; nil before. closing: the queue knows that only a pod in termination is left. reported: the
	// backup knows the result.
	result   *contract.FDBExpiryResult
	closing  bool
	reported bool
}

func (r *expiryRun) serve(ctx workflow.Context) error {
	var (
		result contract.FDBExpiryResult
		broken error
	)
	if before := r.in.Carried; before != nil {
		r.held, r.unused, r.step, r.closing, r.reported = before.Held, before.Unused, before.Pod, before.Closing, before.Reported
	}
	if r.in.Carried != nil && r.in.Carried.Result != nil {
		result = *r.in.Carried.Result
	} else {
		result, broken = r.turn(ctx)
		var again *workflow.ContinueAsNewError
		switch {
		case errors.As(broken, &again):
			return broken
		case temporal.IsCanceledError(broken):
			result = TurnEnded(r.in.Job, contract.FDBTurnFailed, "the workflow of the turn was cancelled")
		case broken != nil:
			result = TurnEnded(r.in.Job, contract.FDBTurnFailed, call.Cause(broken))
			broken = nil
		}
		result.Job, result.Turn = r.in.Job, r.in.Turn
	}
	rest, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	if err := r.end(rest, result); err != nil {
		return err
	}
	return broken
}

// turn does the job. When it returns, its pod may still exist, and containers may be held.
func (r *expiryRun) turn(ctx workflow.Context) (contract.FDBExpiryResult, error) {
	if err := r.prepare(ctx); err != nil {
		return contract.FDBExpiryResult{}, err
	}
	switch {
	case r.plan.Outcome != "":
		return TurnEnded(r.in.Job, r.plan.Outcome, r.plan.Message), nil
	case r.in.Job == contract.FDBJobDelete:
		return r.deleteAll(ctx)
	case r.plan.Expire == nil:
		return TurnEnded(r.in.Job, contract.FDBTurnNothing, "there is nothing to expire"), nil
	}
	return r.expire(ctx)
}

// prepareRounds is how often a turn finds pods of earlier turns and waits for them.
const prepareRounds = 5

// prepare plans the turn once no pod of an earlier turn, or of an earlier start of this one, is left. If such a pod does not go
// away, or there are always others, this turn does nothing.
func (r *expiryRun) prepare(ctx workflow.Context) error {
	for range prepareRounds {
		plan, err := call.LocalFirst(ctx, r.options.Limits, contract.PlanFDBExpiry,
			contract.FDBExpiryStep{Ref: r.in.Ref, Job: r.in.Job, Turn: r.in.Turn})
		if err != nil {
			return err
		}
		r.plan = plan
		var leftovers []contract.FDBPodStep
		for _, pod := range plan.Pods {
			leftovers = append(leftovers, contract.FDBPodStep{Name: pod.Name})
		}
		// If the first pod of this turn exists, creating it finds it; but no pod is created if there is an outcome.
		leftovers = append(leftovers, contract.FDBPodStep{Number: 2})
		if plan.Outcome != "" {
			leftovers = append(leftovers, contract.FDBPodStep{Number: 1})
		}
		waited := false
		for _, step := range leftovers {
			waits, err := r.outlive(ctx, step)
			if err != nil || r.step != nil { // that pod does not go away
				return err
			}
			waited = waited || waits
		}
		if !waited {
			return nil
		}
		if err := r.release(ctx); err != nil { // containers held for those pods: the new plan may have others
			return err
		}
		if err := workflow.Sleep(ctx, entity.Pause); err != nil {
			return err
		}
	}
	r.notYet("pods of earlier turns keep appearing: delete those that Holdfast has not created")
	return nil
}

// notYet replaces the plan by one that does nothing.
func (r *expiryRun) notYet(why string) {
	r.plan = contract.FDBExpiryPlan{Owner: r.plan.Owner, Outcome: contract.FDBTurnNotYet, Message: why}
}

// outlive waits until a pod that this run did not create is gone, and reports whether there was one. A pod that runs has time
// until its limit. Its result is not read: the next plan finds what it has done. If a deleted pod does not go away, as on a lost
// node, it is left as r.step, and the turn does nothing: the end of the turn waits for the pod, and takes no place in the limit
// meanwhile.
func (r *expiryRun) outlive(ctx workflow.Context, step contract.FDBPodStep) (bool, error) {
	step.Ref, step.Turn = r.in.Ref, r.in.Turn
	if err := r.observe(ctx, step); err != nil || !r.pod.Found {
		return false, err
	}
	r.step = &step
	if err := r.holdForLeftovers(ctx); err != nil {
		return true, err
	}
	text := fmt.Sprintf("**Waiting** for pod `%s` of an earlier turn or start to end.", details.OneLine(r.pod.Name))
	deadline := time.Unix(r.pod.Created, 0).Add(r.limit(ctx))
	if err := r.watch(ctx, step, text, deadline, func() bool { return PodOver(r.pod) }); err != nil {
		return true, err
	}
	if r.pod.Ended { // it cannot touch the data any more
		if err := r.release(ctx); err != nil {
			return true, err
		}
	}
	if err := r.remove(ctx, step); err != nil {
		return true, err
	}
	text = fmt.Sprintf("**Waiting** for pod `%s` of an earlier turn or start to be gone.", details.OneLine(r.pod.Name))
	if err := r.watch(ctx, step, text, workflow.Now(ctx).Add(podGonePatience), r.gone); err != nil {
		return true, err
	}
	if !r.gone() {
		r.notYet(fmt.Sprintf("pod %s of an earlier turn is still terminating: check its node and its finalizers", r.pod.Name))
		return true, nil
	}
	r.step = nil
	return true, nil
}

// holdForLeftovers holds the containers for a pod of an earlier turn as far as possible: that turn may have lost them.
func (r *expiryRun) holdForLeftovers(ctx workflow.Context) error {
	places := r.plan.Delete
	if r.plan.Expire != nil {
		places = append([]contract.FDBPlace{r.plan.Expire.FDBPlace}, places...)
	}
	for _, place := range places {
		if _, err := r.hold(ctx, place, contract.FDBContainerExpire); err != nil {
			return err
		}
	}
	return nil
}

// end waits until the pod is gone, releases the containers, and then reports to the backup and the queue.
func (r *expiryRun) end(ctx workflow.Context, result contract.FDBExpiryResult) error {
	if err := r.clear(ctx, &result); err != nil {
		return err
	}
	if err := r.release(ctx); err != nil {
		return err
	}
	for _, place := range r.unused {
		if err := r.leave(ctx, place); err != nil {
			return err
		}
	}
	var reported error
	if !r.reported && result.Outcome != contract.FDBTurnGone {
		result.At = workflow.Now(ctx).Unix()
		reported = r.report(ctx, contract.FDBTurnReports{Result: &result})
	}
	ended := r.report(ctx, contract.FDBTurnReports{Report: &contract.FDBTurnReport{
		Ref: r.in.Ref, Turn: r.in.Turn, Ended: true, Outcome: result.Outcome,
	}})
	if err := errors.Join(reported, ended); err != nil {
		return err
	}
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("**%s** (%s): %s", result.Outcome, result.Reason, details.OneLine(result.Message)))
	// Nothing yields from here to the return. Signals about a pod that is gone need no reaction.
	entity.Drain(r.changed)
	return nil
}

// clear waits until the turn's last pod is really gone, however long that takes. The queue continues with others meanwhile, and
// others may hold the containers once the pod has ended.
func (r *expiryRun) clear(ctx workflow.Context, result *contract.FDBExpiryResult) error {
	if r.step == nil {
		return nil
	}
	if err := r.remove(ctx, *r.step); err != nil {
		workflow.GetLogger(ctx).Error("pod not deleted", "error", err)
		return err
	}
	r.mayContinue, r.result = true, result
	for !r.gone() {
		if !r.closing {
			if err := r.reportClosing(ctx, result); err != nil {
				return err
			}
		}
		text := fmt.Sprintf("**%s:** %s\n\n**Waiting** for pod `%s` to be gone; others have their turns meanwhile.",
			result.Outcome, details.OneLine(result.Message), details.OneLine(r.pod.Name))
		idle := func() bool { return r.pod.Ended && len(r.held) > 0 }
		err := r.watch(ctx, *r.step, text, workflow.Now(ctx).Add(closingAgain), func() bool { return r.gone() || idle() })
		if err == nil && !r.gone() && idle() {
			err = r.release(ctx)
		} else {
			r.closing = false
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// reportClosing reports to the queue that only a pod in termination is left. If the turn could not do its job, it reports to the
// backup, too: somebody may have to check the node first.
func (r *expiryRun) reportClosing(ctx workflow.Context, result *contract.FDBExpiryResult) error {
	reports := contract.FDBTurnReports{Report: &contract.FDBTurnReport{
		Ref: r.in.Ref, Turn: r.in.Turn, Closing: true, Outcome: result.Outcome,
	}}
	if !r.reported && (result.Outcome == contract.FDBTurnFailed || result.Outcome == contract.FDBTurnNotYet) {
		result.At = workflow.Now(ctx).Unix()
		reports.Result = result
	}
	if err := r.report(ctx, reports); err != nil {
		return err
	}
	r.closing, r.reported = true, r.reported || reports.Result != nil
	return nil
}
