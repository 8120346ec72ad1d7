package backup

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/fdb/tools"
)

// ask asks the owner of the FoundationDB cluster, which is told what this backup wants of the agents.
func (r *backupRun) ask(ctx workflow.Context, ask contract.FDBCommandRequest) (contract.FDBCommandAnswer, error) {
	ask.Member = contract.FDBMember{Name: r.name(), Paused: r.view.Desired.State == "Paused"}
	if ask.Cluster == "" {
		ask.Cluster, ask.Leave = r.view.Owner, Stopping(r.view)
	}
	wait := contract.FDBRequestWait
	if r.ending() {
		wait = endingLimit
	}
	summary := "Tell the owner of the FoundationDB cluster of this backup"
	if ask.Command != nil {
		summary = fmt.Sprintf("Have fdbbackup %s run", ask.Command.Operation)
	}
	answer, answered, err := tools.RequestOwner(ctx, r.in.Cluster, ask, summary, wait)
	if err != nil || !answered {
		return answer, err
	}
	if !ask.Leave {
		r.memory().Owner, r.memory().Opposed = ask.Cluster, answer.Opposed
	}
	return answer, nil
}

// leave tells the owner that knows of this backup that it wants nothing more.
func (r *backupRun) leave(ctx workflow.Context) error {
	if _, err := r.ask(ctx, contract.FDBCommandRequest{Cluster: r.memory().Owner, Leave: true}); err != nil {
		return err
	}
	r.memory().Owner, r.memory().Opposed = "", nil
	return nil
}

// tellThrottle tells the throttle what this backup wants, and remembers it.
func (r *backupRun) tellThrottle(ctx workflow.Context, action contract.FDBSlotAction) error {
	summary := "Tell the throttle of first snapshots: " + string(action)
	_, err := call.LocalFirst(ctx, r.options.Limits, contract.SignalFDBThrottle.WithSummary(summary),
		contract.FDBSlotRequest{
			Cluster: r.in.Cluster, WorkflowID: workflow.GetInfo(ctx).WorkflowExecution.ID, Namespace: r.in.Ref.Namespace, Action: action,
		})
	if err != nil {
		return err
	}
	switch action {
	case contract.FDBSlotAcquire:
		r.memory().Slot = contract.FDBSlotRequested
	case contract.FDBSlotCount:
		r.memory().Slot = contract.FDBSlotGranted
	case contract.FDBSlotRelease:
		r.memory().Slot = contract.FDBSlotNone
	}
	return nil
}
