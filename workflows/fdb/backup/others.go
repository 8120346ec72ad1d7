package backup

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/fdb/requests"
)

// request sends a request to the owner of the FoundationDB cluster, with what this backup wants of the agents.
func (r *backupRun) request(ctx workflow.Context, request contract.FDBCommandRequest) (contract.FDBCommandAnswer, error) {
	request.Member = contract.FDBMember{Name: r.name(), Paused: r.View.Desired.State == "Paused"}
	if request.Cluster == "" {
		request.Cluster, request.Leave = r.View.Owner, Stopping(r.View)
	}
	wait := contract.FDBRequestWait
	if r.ending() {
		wait = endingLimit
	}
	summary := "Enter this backup with the owner of the FoundationDB cluster"
	if request.Command != nil {
		summary = fmt.Sprintf("Run fdbbackup %s", request.Command.Operation)
	}
	answer, answered, err := requests.ToOwner(ctx, r.In.Cluster, request, summary, wait)
	if err != nil || !answered {
		return answer, err
	}
	if !request.Leave {
		r.In.Memory.Owner, r.In.Memory.Opposed = request.Cluster, answer.Opposed
	}
	return answer, nil
}

// leave deregisters the backup with the owner that knows of it.
func (r *backupRun) leave(ctx workflow.Context) error {
	if _, err := r.request(ctx, contract.FDBCommandRequest{Cluster: r.In.Memory.Owner, Leave: true}); err != nil {
		return err
	}
	r.In.Memory.Owner, r.In.Memory.Opposed = "", nil
	return nil
}

// requestSlot sends the throttle what this backup wants, and remembers it.
func (r *backupRun) requestSlot(ctx workflow.Context, action contract.FDBSlotAction) error {
	summary := "Send a request to the throttle of first snapshots: " + string(action)
	_, err := call.LocalFirst(ctx, r.Options.Limits, contract.SignalFDBThrottle.WithSummary(summary),
		contract.FDBSlotRequest{
			Cluster: r.In.Cluster, WorkflowID: workflow.GetInfo(ctx).WorkflowExecution.ID, Namespace: r.In.Ref.Namespace, Action: action,
		})
	if err != nil {
		return err
	}
	switch action {
	case contract.FDBSlotAcquire:
		r.In.Memory.Slot = contract.FDBSlotRequested
	case contract.FDBSlotCount:
		r.In.Memory.Slot = contract.FDBSlotGranted
	case contract.FDBSlotRelease:
		r.In.Memory.Slot = contract.FDBSlotNone
	}
	return nil
}
