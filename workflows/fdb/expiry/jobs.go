package expiry

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/details"
	"holdfast.dev/holdfast/workflows/fdb/requests"
)

// expire expires the newest container and, if that holds all that must be restorable, deletes the older ones.
func (r *expiryRun) expire(ctx workflow.Context) (contract.FDBExpiryResult, error) {
	expire := *r.plan.Expire
	answer, err := r.hold(ctx, expire.FDBPlace, contract.FDBContainerExpire)
	if err != nil {
		return contract.FDBExpiryResult{}, err
	}
	if !answer.Held {
		return TurnEnded(r.in.Job, contract.FDBTurnNotYet, "nothing is expired now: "+answer.Busy), nil
	}
	left, failure, err := r.work(ctx, contract.FDBPodStep{Number: 1, Expire: &expire})
	switch {
	case err != nil:
		return contract.FDBExpiryResult{}, err
	case left == nil:
		return TurnEnded(r.in.Job, contract.FDBTurnFailed, failure), nil
	}
	if !DescribesOnly(expire, *left) {
		return TurnEnded(r.in.Job, contract.FDBTurnNotYet, "the pod that was found expires another backup, which is no longer the "+
			"newest: the next turn expires the newest one"), nil
	}
	result := TurnExpired(expire, *left)
	if len(r.plan.Delete) == 0 || !HoldsMinimum(expire, *left) {
		return result, nil
	}
	deleted, err := r.deleteOlder(ctx)
	if err != nil {
		return contract.FDBExpiryResult{}, err
	}
	return WithOlder(result, deleted), nil
}

// deleteOlder deletes what the newest container makes superfluous, and returns the URLs whose data are gone. What others use, or
// what cannot be deleted now, stays for another turn: that is no failure of this one.
func (r *expiryRun) deleteOlder(ctx workflow.Context) ([]string, error) {
	if ready, err := r.next(ctx); err != nil || !ready {
		return nil, err
	}
	var mine []contract.FDBPlace
	for _, place := range r.plan.Delete {
		answer, err := r.hold(ctx, place, contract.FDBContainerDelete)
		if err != nil {
			return nil, err
		}
		if answer.Held {
			mine = append(mine, place)
		}
		if len(mine) == MaxDelete {
			break // the others are for another turn
		}
	}
	if len(mine) == 0 {
		return nil, nil
	}
	left, failure, err := r.work(ctx, contract.FDBPodStep{Number: 2, Delete: mine})
	if err != nil {
		return nil, err
	}
	if failure != "" {
		workflow.GetLogger(ctx).Warn("older containers not deleted", "cause", failure)
	}
	deleted, _ := DeletedOf(mine, left)
	r.forget(mine, deleted)
	return deleted, nil
}

// deleteAll deletes all data of a backup, except what others use. What is too much for one pod is left for another turn.
func (r *expiryRun) deleteAll(ctx workflow.Context) (contract.FDBExpiryResult, error) {
	var mine, shared []contract.FDBPlace
	var kept, others []string
	more := false
	for _, place := range r.plan.Delete {
		if more = len(mine) == MaxDelete; more {
			break
		}
		answer, err := r.hold(ctx, place, contract.FDBContainerDelete)
		switch {
		case err != nil:
			return contract.FDBExpiryResult{}, err
		case answer.Held:
			mine = append(mine, place)
		case len(answer.Others) > 0:
			kept, shared = append(kept, place.URL), append(shared, place)
			for _, other := range answer.Others {
				others = requests.WithName(others, other)
			}
		default:
			return TurnEnded(r.in.Job, contract.FDBTurnNotYet,
				fmt.Sprintf("the data at %s are not deleted yet: %s", place.URL, answer.Busy)), nil
		}
	}
	var (
		deleted, left []string
		trouble       string
	)
	if len(mine) > 0 {
		result, failure, err := r.work(ctx, contract.FDBPodStep{Number: 1, Delete: mine})
		if err != nil {
			return contract.FDBExpiryResult{}, err
		}
		if trouble = failure; result != nil && result.Failure != nil {
			trouble = result.Failure.Message
		}
		deleted, left = DeletedOf(mine, result)
		r.forget(mine, deleted)
	}
	if len(left) == 0 && more {
		return DeletedSome(deleted), nil
	}
	if len(left) == 0 {
		r.unused = append(r.unused, shared...)
	}
	return TurnDeleted(deleted, left, kept, others, trouble), nil
}

// forget notes that the backup has no data left at those URLs.
func (r *expiryRun) forget(places []contract.FDBPlace, urls []string) {
	for _, place := range places {
		if slices.Contains(urls, place.URL) {
			r.unused = append(r.unused, place)
		}
	}
}

// fdbGuardTimeout is how long a guard may take to answer. Without an answer the turn goes on: a guard drops a holder whose
// workflow is gone.
const fdbGuardTimeout = 3 * time.Minute

// name is the backup's name for people.
func (r *expiryRun) name() string {
	return requests.UserName(cmp.Or(r.plan.Owner, r.in.Ref.String()), r.in.Cluster)
}

// user returns the backup, or this turn of it, as a user for guards.
func (r *expiryRun) user(workflowID string) contract.FDBContainerUser {
	return contract.FDBContainerUser{
		WorkflowID: workflowID, Name: r.name(), Cluster: r.in.Cluster, Namespace: r.in.Ref.Namespace,
	}
}

// namesOf returns the names of other objects of this Kubernetes cluster, as the backup's namespace may know them.
func (r *expiryRun) namesOf(sharing []contract.ObjectRef) []string {
	var names []string
	for _, ref := range sharing {
		names = requests.WithName(names, requests.NameFor(r.user(""), contract.FDBContainerUser{
			Name: requests.UserName(ref.String(), r.in.Cluster), Cluster: r.in.Cluster, Namespace: ref.Namespace,
		}))
	}
	return names
}

// hold requests a container from its guard. A guard that does not answer counts as busy; it may have granted the request all the
// same.
func (r *expiryRun) hold(
	ctx workflow.Context, place contract.FDBPlace, action contract.FDBContainerAction,
) (contract.FDBContainerAnswer, error) {
	if sharing := r.plan.Sharing[place.Container]; action == contract.FDBContainerDelete && len(sharing) > 0 {
		return contract.FDBContainerAnswer{Others: r.namesOf(sharing)}, nil
	}
	known := slices.Contains(r.held, place)
	if !known {
		r.held = append(r.held, place)
	}
	answer, err := r.guard(ctx, contract.FDBContainerRequest{
		Container: place.Container, Action: action, Of: contract.WorkflowID(r.in.Cluster, contract.KindFDBBackup, r.in.Ref),
		Whole: r.in.Job == contract.FDBJobDelete && action == contract.FDBContainerDelete,
		User:  r.user(workflow.GetInfo(ctx).WorkflowExecution.ID),
	}, "Hold the container for this turn alone, to "+string(action)+" data")
	switch {
	case temporal.IsCanceledError(err):
		return answer, err
	case err != nil:
		return contract.FDBContainerAnswer{Busy: "the workflow that guards the container has not answered: " + call.Cause(err)}, nil
	case !answer.Held && !known:
		r.held = slices.DeleteFunc(r.held, func(held contract.FDBPlace) bool { return held == place })
	}
	return answer, nil
}

// release releases all containers.
func (r *expiryRun) release(ctx workflow.Context) error {
	for len(r.held) > 0 {
		_, err := r.guard(ctx, contract.FDBContainerRequest{
			Container: r.held[0].Container, Action: contract.FDBContainerRelease,
			User: r.user(workflow.GetInfo(ctx).WorkflowExecution.ID),
		}, "Release the container")
		if temporal.IsCanceledError(err) {
			return err
		}
		if err != nil {
			workflow.GetLogger(ctx).Warn("container not released; its guard will find that the turn is gone", "error", err)
		}
		r.held = r.held[1:]
	}
	return nil
}

// leave reports to a guard that the backup no longer uses the container.
func (r *expiryRun) leave(ctx workflow.Context, place contract.FDBPlace) error {
	_, err := r.guard(ctx, contract.FDBContainerRequest{
		Container: place.Container, Action: contract.FDBContainerLeave,
		User: r.user(contract.WorkflowID(r.in.Cluster, contract.KindFDBBackup, r.in.Ref)),
	}, "Report to the guard that the backup no longer uses the container")
	if err != nil && !temporal.IsCanceledError(err) {
		workflow.GetLogger(ctx).Warn("guard does not know that the backup no longer uses the container", "error", err)
		return nil
	}
	return err
}

func (r *expiryRun) guard(
	ctx workflow.Context, request contract.FDBContainerRequest, summary string,
) (contract.FDBContainerAnswer, error) {
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("**Waiting** for the guard of container `%s`: %s.",
		details.OneLine(request.Container), strings.ToLower(summary)))
	return requests.ToContainer(ctx, request, fdbGuardTimeout, summary)
}

// report reports to the backup or the queue, and does not give up.
func (r *expiryRun) report(ctx workflow.Context, reports contract.FDBTurnReports) error {
	reports.Cluster, reports.Ref = r.in.Cluster, r.in.Ref
	summary := "Report to the backup how its turn has ended"
	switch {
	case reports.Report != nil && reports.Report.Ended:
		summary = "Report to the queue that the turn has ended"
	case reports.Report != nil:
		summary = "Report to the queue that only a terminating pod is left"
	}
	_, err := call.Durable(ctx, r.options.Limits, contract.ReportFDBTurn.WithSummary(summary), reports)
	return err
}
