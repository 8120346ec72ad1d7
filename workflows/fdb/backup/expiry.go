package backup

import (
	"fmt"
	"slices"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/fdb/tools"
)

// drainResults drains the results of turns, and returns how many there were. The latest is kept until it is published.
func (r *backupRun) drainResults() int {
	waiting := r.results.Len()
	for received := 0; ; received++ {
		var result contract.FDBExpiryResult
		if !r.results.ReceiveAsync(&result) {
			return max(waiting, received)
		}
		r.memory().Result = Later(r.memory().Result, result)
		r.deep = true // the containers have changed
	}
}

// expiryFirst brings the queue and the guards up to date before the backup itself, and reports whether that was all: the object
// waits only for the deletion of its data, or only the result of a turn had to be written.
func (r *backupRun) expiryFirst(ctx workflow.Context) (done bool, err error) {
	r.memory().Result = Pending(r.view, r.in.Memory)
	if !r.ending() {
		if err := r.reportData(ctx); err != nil {
			return false, err
		}
	}
	result := r.memory().Result
	switch {
	case r.view.BeingDeleted && !r.view.Held && r.view.DeleteWanted:
		return true, r.clear(ctx)
	case result != nil && r.settled() && !Gone(r.view) && result.Reason != fdbv1alpha1.ExpiryFailed && !AgentsDue(r.view):
		r.seen = contract.FDBInspection{} // from before the turn
		return true, r.publishTurn(ctx)
	case result != nil && r.settled() && !Gone(r.view) && result.Reason == fdbv1alpha1.ExpiryFailed:
		r.view.Reconciled = false // the condition is judged like every other
	}
	return false, nil
}

// publishTurn writes how a turn ended, and nothing else.
func (r *backupRun) publishTurn(ctx workflow.Context) error {
	return r.publishData(ctx, "Write the result of the turn")
}

// publishData writes what is known of the data, and how a turn ended.
func (r *backupRun) publishData(ctx workflow.Context, summary string) error {
	err := r.see(call.LocalFirst(ctx, r.options.Limits, contract.PublishFDBBackup.WithSummary(summary), contract.FDBFindings{
		Ref: r.in.Ref, Generation: r.view.Generation, Backups: Merge(r.situation()), Expiry: r.memory().Result, ExpiryAlone: true,
	}))
	if err == nil {
		r.memory().Result = nil
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
	now, action := workflow.Now(ctx), WantedJob(r.view)
	if !QueueDue(r.view, r.in.Memory, r.begins, now) {
		return nil
	}
	summary := "Ask the queue of expirations for a turn: " + string(action)
	if action == contract.FDBJobNone {
		summary = "Leave the queue of expirations"
	}
	_, err := call.LocalFirst(ctx, r.options.Limits, contract.SignalFDBExpiryQueue.WithSummary(summary),
		contract.FDBQueueRequest{Cluster: r.in.Cluster, Ref: r.in.Ref, Job: action})
	if err != nil {
		return err
	}
	r.begins = false
	r.memory().Reported, r.memory().ReportedAt = action, now.Unix()
	return nil
}

// updateGuards reports to the guards of the containers which of them have data of this backup, and which no longer. A guard that
// does not answer keeps no backup from running: the next pass sends the request again.
func (r *backupRun) updateGuards(ctx workflow.Context) error {
	r.unanswered = false
	present := Mentioned(r.view)
	if Gone(r.view) {
		present = nil
	}
	for _, container := range slices.Clone(r.memory().Used) {
		if slices.Contains(present, container) {
			continue
		}
		if known, err := r.requestGuard(ctx, container, contract.FDBContainerLeave, false); err != nil || !known {
			return err
		}
	}
	if Gone(r.view) {
		return nil
	}
	for _, container := range Containers(r.view) {
		switch {
		case slices.Contains(r.memory().Used, container):
		case r.view.BeingDeleted: // the turn sends its own requests; in the end the same is left
			r.memory().Used = append(r.memory().Used, container)
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
	container, fresh := NewContainer(r.view)
	if container == "" || slices.Contains(r.memory().Used, container) || (!made && !fresh) {
		return nil
	}
	_, err := r.requestGuard(ctx, container, contract.FDBContainerUse, fresh)
	return err
}

// requestGuard sends a request to a container's guard, and reports whether it has answered.
func (r *backupRun) requestGuard(
	ctx workflow.Context, container string, action contract.FDBContainerAction, fresh bool,
) (bool, error) {
	_, err := tools.RequestContainer(ctx, contract.FDBContainerRequest{
		Container: container, Action: action, Fresh: fresh,
		User: contract.FDBContainerUser{Name: r.name(), Cluster: r.in.Cluster, Namespace: r.in.Ref.Namespace},
	}, tools.GuardTimeout, fmt.Sprintf("Send a request to the guard of the container: %s", action))
	if temporal.IsCanceledError(err) {
		return false, err
	}
	if err != nil {
		workflow.GetLogger(ctx).Warn("the guard of the container has not answered", "container", container, "error", err)
		r.unanswered = true
		r.memory().Quiet++
		return false, nil
	}
	r.memory().Used = slices.DeleteFunc(r.memory().Used, func(other string) bool { return other == container })
	if action == contract.FDBContainerUse {
		r.memory().Used = append(r.memory().Used, container)
	}
	return true, nil
}

// name is the backup's name for people.
func (r *backupRun) name() string {
	return tools.UserName(r.in.Ref.String(), r.in.Cluster)
}
