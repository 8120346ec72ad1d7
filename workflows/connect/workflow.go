package connect

import (
	"context"
	"errors"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"

	"holdfast.dev/holdfast/workflows/contract"
)

// Workflow is how a workflow is started and addressed. It is the same, no matter who starts it.
type Workflow struct {
	Kind    contract.Kind
	Options client.StartWorkflowOptions
	Input   any
}

// ForObject is the workflow that serves an object.
func ForObject(kind contract.Kind, cluster string, ref contract.ObjectRef) Workflow {
	return started(kind, contract.WorkflowID(cluster, kind, ref), cluster, ref, ref.String(),
		contract.ObjectInput{Cluster: cluster, Ref: ref})
}

// PlanStart is what the Schedule of a plan starts.
func PlanStart(in contract.PlanStartInput) Workflow {
	w := ForObject(contract.KindPlanStart, in.Cluster, in.Ref)
	w.Input = in
	return w
}

// FDBTurn is the turn of a FoundationDB backup.
func FDBTurn(in contract.FDBExpiryInput) Workflow {
	w := ForObject(contract.KindFDBExpiry, in.Cluster, in.Ref)
	w.Options.StaticSummary, w.Input = w.Kind.SummaryOf(fmt.Sprintf("%s: %s", in.Ref, in.Job)), in
	return w
}

// Periodic is the periodic work of a Kubernetes cluster.
func Periodic(kind contract.Kind, cluster string) Workflow {
	w := started(kind, contract.ScheduleID(cluster, kind), cluster, contract.ObjectRef{}, cluster,
		contract.ScheduledInput{Cluster: cluster})
	w.Options.StaticSummary = kind.Summary
	return w
}

// VeleroQueue gives turns before Velero.
func VeleroQueue(cluster string) Workflow {
	return started(contract.KindVeleroQueue, contract.VeleroQueueID(cluster), cluster, contract.ObjectRef{}, cluster,
		contract.VeleroQueueInput{Cluster: cluster})
}

// Heartbeat keeps what a Kubernetes cluster has last said of itself.
func Heartbeat(cluster string) Workflow {
	return started(contract.KindHeartbeat, contract.HeartbeatID(cluster), cluster, contract.ObjectRef{}, cluster,
		contract.HeartbeatInput{Cluster: cluster})
}

// FDBThrottle gives slots for first snapshots of FoundationDB backups.
func FDBThrottle(cluster string) Workflow {
	return started(contract.KindFDBThrottle, contract.FDBThrottleID(cluster), cluster, contract.ObjectRef{}, cluster,
		contract.FDBThrottleInput{Cluster: cluster})
}

// FDBExpiryQueue gives turns for expirations and deletions of FoundationDB backups.
func FDBExpiryQueue(cluster string) Workflow {
	return started(contract.KindFDBExpiryQueue, contract.FDBExpiryQueueID(cluster), cluster, contract.ObjectRef{}, cluster,
		contract.FDBExpiryQueueInput{Cluster: cluster})
}

// FDBCluster is the owner of a FoundationDB cluster, for all Kubernetes clusters.
func FDBCluster(name string) Workflow {
	return started(contract.KindFDBCluster, contract.FDBClusterID(name), "", contract.ObjectRef{Name: name}, name,
		contract.FDBClusterInput{Cluster: name})
}

// FDBContainer is the guard of a container, for all Kubernetes clusters.
func FDBContainer(name string) Workflow {
	return started(contract.KindFDBContainer, contract.FDBContainerID(name), "", contract.ObjectRef{Name: name}, name,
		contract.FDBContainerInput{Container: name})
}

func started(kind contract.Kind, id, cluster string, ref contract.ObjectRef, name string, input any) Workflow {
	return Workflow{Kind: kind, Input: input, Options: client.StartWorkflowOptions{
		ID: id, TaskQueue: kind.TaskQueue(cluster), WorkflowTaskTimeout: contract.WorkflowTaskTimeout,
		TypedSearchAttributes: kind.Attributes(cluster, ref), StaticSummary: kind.SummaryOf(name), Priority: ref.Fairness(),
	}}
}

// SignalWithStart signals the workflow, and starts it if it does not run.
func (w Workflow) SignalWithStart(ctx context.Context, c client.Client, signal string, payload any) error {
	_, err := c.SignalWithStartWorkflow(ctx, w.Options.ID, signal, payload, w.Options, w.Kind.Workflow, w.Input)
	return w.wrapped("signal", err)
}

// SignalRunning signals the workflow if it runs.
func (w Workflow) SignalRunning(ctx context.Context, c client.Client, signal string, payload any) error {
	err := c.SignalWorkflow(ctx, w.Options.ID, "", signal, payload)
	if NotFound(err) {
		return nil
	}
	return w.wrapped("signal", err)
}

// Ensure starts the workflow if it does not run, and otherwise leaves it alone.
func (w Workflow) Ensure(ctx context.Context, c client.Client) error {
	w.Options.WorkflowIDConflictPolicy = enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING
	_, err := c.ExecuteWorkflow(ctx, w.Options, w.Kind.Workflow, w.Input)
	return w.wrapped("start", err)
}

// UpdateWithStart sends an Update to the workflow, starts it if it does not run, and waits for the answer.
func (w Workflow) UpdateWithStart(ctx context.Context, c client.Client, id, name string, in, answer any) error {
	w.Options.WorkflowIDConflictPolicy = enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING
	update, err := c.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: c.NewWithStartWorkflowOperation(w.Options, w.Kind.Workflow, w.Input),
		UpdateOptions: client.UpdateWorkflowOptions{
			UpdateID: id, UpdateName: name, Args: []any{in}, WaitForStage: client.WorkflowUpdateStageCompleted,
		},
	})
	if err == nil {
		err = update.Get(ctx, answer)
	}
	return w.wrapped("update", err)
}

func (w Workflow) wrapped(verb string, err error) error {
	if err != nil {
		return fmt.Errorf("%s workflow %s: %w", verb, w.Options.ID, err)
	}
	return nil
}

// ErrNotRunning says that a workflow does not run.
var ErrNotRunning = errors.New("the workflow does not run")

// QueryRunning queries a workflow, and returns ErrNotRunning if it does not run.
func QueryRunning(ctx context.Context, c client.Client, id, query string, result any) error {
	answer, err := c.QueryWorkflowWithOptions(ctx, &client.QueryWorkflowWithOptionsRequest{
		WorkflowID: id, QueryType: query, QueryRejectCondition: enumspb.QUERY_REJECT_CONDITION_NOT_OPEN,
	})
	switch {
	case NotFound(err), err == nil && answer.QueryRejected != nil:
		return ErrNotRunning
	case err != nil:
		return err
	}
	return answer.QueryResult.Get(result)
}

// Describe returns the last run of a workflow; nil if there is none.
func Describe(ctx context.Context, c client.Client, id string) (*workflowpb.WorkflowExecutionInfo, error) {
	described, err := c.DescribeWorkflowExecution(ctx, id, "")
	switch {
	case NotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("describe workflow %s: %w", id, err)
	}
	return described.GetWorkflowExecutionInfo(), nil
}

// Ended reports whether the workflow of a run has ended. One that has continued as new runs.
func Ended(run *workflowpb.WorkflowExecutionInfo) bool {
	switch run.GetStatus() {
	case enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, enumspb.WORKFLOW_EXECUTION_STATUS_FAILED,
		enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED, enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED,
		enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:
		return true
	}
	return false
}

// NotFound reports whether Temporal knows no such workflow that runs, or no such Schedule.
func NotFound(err error) bool {
	var missing *serviceerror.NotFound
	return errors.As(err, &missing)
}
