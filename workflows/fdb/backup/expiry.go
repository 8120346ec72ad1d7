package backup

import (
	"fmt"
	"slices"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/entity"
	"holdfast.dev/holdfast/workflows/fdb/requests"
)

// drainResults drains the results of turns, and returns how many there were. The latest is kept until it is published.
func (r *backupRun) drainResults() int {
	return entity.DrainNoting(r.results, func(result contract.FDBExpiryResult) {
		r.In.Memory.Result = Later(r.In.Memory.Result, result)
		r.deep = true // the containers have changed
	})
}

// expiryFirst brings the queue and the guards up to date before the backup itself, and reports whether that was all: the object
// waits only for the deletion of its data, or only the result of a turn had to be written.
func (r *backupRun) expiryFirst(ctx workflow.Context) (done bool, err error) {
	r.In.Memory.Result = Pending(r.View, r.In.Memory)
	if !r.ending() {
		if err := r.reportData(ctx); err != nil {
			return false, err
		}
	}
	result := r.In.Memory.Result
	switch {
	case r.View.BeingDeleted && !r.View.Held && r.View.DeleteWanted:
		return true, r.clear(ctx)
	case result != nil && r.Settled() && !Gone(r.View) && result.Reason != fdbv1alpha1.ExpiryFailed && !AgentsDue(r.View):
		r.seen = contract.FDBInspection{} // from before the turn
		return true, r.publishTurn(ctx)
	case result != nil && r.Settled() && !Gone(r.View) && result.Reason == fdbv1alpha1.ExpiryFailed:
		r.View.Reconciled = false // the condition is judged like every other
	}
	return false, nil
}

// publishTurn writes how a turn ended, and nothing else.
func (r *backupRun) publishTurn(ctx workflow.Context) error {
	return r.publishData(ctx, "Write the result of the turn")
}

// publishData writes what is known of the data, and how a turn ended.
func (r *backupRun) publishData(ctx workflow.Context, summary string) error {
	err := r.See(call.LocalFirst(ctx, r.Options.Limits, contract.PublishFDBBackup.WithSummary(summary), contract.FDBFindings{
		Ref: r.In.Ref, Generation: r.View.Generation, Backups: Merge(r.situation()), Expiry: r.In.Memory.Result, ExpiryAlone: true,
	}))
	if err == nil {
		r.In.Memory.Result = nil
	}
	return err
}

// reportData brings the queue of expirations and the guards of the containers up to date.
func (r *backupRun) reportData(ctx workflow.Context) error {
	if err := r.requestTurn(ctx); err != nil {
		return err
	}
	return r.updateGuards(ctx)
}

// requestTurn sends the queue what this backup wants, if it may not know: at the start of every run, on a change, and at
// intervals.
func (r *backupRun) requestTurn(ctx workflow.Context) error {
	now, action := workflow.Now(ctx), WantedJob(r.View)
	if !QueueDue(r.View, r.In.Memory, r.begins, now) {
		return nil
	}
	summary := "Ask the queue of expirations for a turn: " + string(action)
	if action == contract.FDBJobNone {
		summary = "Leave the queue of expirations"
	}
	_, err := call.LocalFirst(ctx, r.Options.Limits, contract.SignalFDBExpiryQueue.WithSummary(summary),
		contract.FDBQueueRequest{Cluster: r.In.Cluster, Ref: r.In.Ref, Job: action})
	if err != nil {
		return err
	}
	r.begins = false
	r.In.Memory.Reported, r.In.Memory.ReportedAt = action, now.Unix()
	return nil
}

// updateGuards reports to the guards of the containers which of them have data of this backup, and which no longer. A guard that
// does not answer keeps no backup from running: the next pass sends the request again.
func (r *backupRun) updateGuards(ctx workflow.Context) error {
	r.unanswered = false
	present := Mentioned(r.View)
	if Gone(r.View) {
		present = nil
	}
	for _, container := range slices.Clone(r.In.Memory.Used) {
		if slices.Contains(present, container) {
			continue
		}
		if known, err := r.requestGuard(ctx, container, contract.FDBContainerLeave, false); err != nil || !known {
			return err
		}
	}
	if Gone(r.View) {
		return nil
	}
	for _, container := range Containers(r.View) {
		switch {
		case slices.Contains(r.In.Memory.Used, container):
		case r.View.BeingDeleted: // the turn sends its own requests; in the end the same is left
			r.In.Memory.Used = append(r.In.Memory.Used, container)
		default:
			if known, err := r.requestGuard(ctx, container, contract.FDBContainerUse, false); err != nil || !known {
				return err
			}
		}
	}
	return nil
}

// useNew reports to the guard of the container that a start is about to make, if nobody else can know it, or that it has made.
func (r *backupRun) useNew(ctx workflow.Context, made bool) error {
	container, fresh := NewContainer(r.View)
	if container == "" || slices.Contains(r.In.Memory.Used, container) || (!made && !fresh) {
		return nil
	}
	_, err := r.requestGuard(ctx, container, contract.FDBContainerUse, fresh)
	return err
}

// requestGuard sends a request to a container's guard, and reports whether it has answered.
func (r *backupRun) requestGuard(
	ctx workflow.Context, container string, action contract.FDBContainerAction, fresh bool,
) (bool, error) {
	_, err := requests.ToContainer(ctx, contract.FDBContainerRequest{
		Container: container, Action: action, Fresh: fresh,
		User: contract.FDBContainerUser{Name: r.name(), Cluster: r.In.Cluster, Namespace: r.In.Ref.Namespace},
	}, requests.GuardTimeout, fmt.Sprintf("Send a request to the guard of the container: %s", action))
	if temporal.IsCanceledError(err) {
		return false, err
	}
	if err != nil {
		workflow.GetLogger(ctx).Warn("the guard of the container has not answered", "container", container, "error", err)
		r.unanswered = true
		r.In.Memory.Quiet++
		return false, nil
	}
	r.In.Memory.Used = slices.DeleteFunc(r.In.Memory.Used, func(other string) bool { return other == container })
	if action == contract.FDBContainerUse {
		r.In.Memory.Used = append(r.In.Memory.Used, container)
	}
	return true, nil
}

// name is the backup's name for people.
func (r *backupRun) name() string {
	return requests.UserName(r.In.Ref.String(), r.In.Cluster)
}
