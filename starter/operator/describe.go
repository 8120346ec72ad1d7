package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	sdkpb "go.temporal.io/api/sdk/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	temporalsdk "go.temporal.io/sdk/temporal"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/workflows/codec"
	"holdfast.dev/holdfast/workflows/connect"
	"holdfast.dev/holdfast/workflows/contract"
)

// DescribeTimeout bounds each question to Temporal.
const DescribeTimeout = 10 * time.Second

// UpdateTimeout bounds an Update: a coordinator that has just begun, or pauses, answers when it has listed its objects, within a
// minute.
const UpdateTimeout = time.Minute + DescribeTimeout

// DescribedWorkflow is what Temporal knows of the workflow of an object.
type DescribedWorkflow struct {
	ID     string `json:"id"`
	Status string `json:"status"`
	// Waiting says what a running workflow waits for.
	Waiting string `json:"waiting,omitempty"`
	// Retried are the steps that have failed and are retried, each with its attempt and the last error. A step of a
	// finalization that waits is one of them.
	Retried []string `json:"retried,omitempty"`
	// Query queries a workflow, this one or another, for its state (contract.QueryState); nil unless this one runs.
	Query func(workflowID string, state any) error `json:"-"`
	// QueryAny queries any workflow for its state, also if this one does not run; nil without Temporal.
	QueryAny func(workflowID string, state any) error `json:"-"`
}

// Description is what is shown of one object.
type Description interface {
	Print(out io.Writer) error
}

// describer reads one object of a kind and describes its workflow.
type describer func(
	ctx context.Context, flags *Flags, kubeClient client.Client, workflow WorkflowDescriber, key types.NamespacedName,
) (Description, error)

// WorkflowDescriber describes the workflow that serves a tenant's object.
type WorkflowDescriber func(kind contract.Kind, object client.Object) DescribedWorkflow

// describerOf makes the describer of a kind of the tenants' objects from what describes one that was read.
func describerOf[T any, Object interface {
	*T
	client.Object
}](kind contract.Kind, describe func(Object, WorkflowDescriber) Description) describer {
	return func(
		ctx context.Context, _ *Flags, kubeClient client.Client, workflow WorkflowDescriber, key types.NamespacedName,
	) (Description, error) {
		object := Object(new(T))
		if err := kubeClient.Get(ctx, key, object); err != nil {
			return nil, fmt.Errorf("get %s %s: %w", kind.Kubernetes, key, err)
		}
		return describe(object, workflow), nil
	}
}

// DescribeWorkflow never fails: the object itself is worth showing while Temporal is away.
func DescribeWorkflow(parent context.Context, temporal *connect.Temporal, id string) DescribedWorkflow {
	ctx, cancel := context.WithTimeout(parent, DescribeTimeout)
	defer cancel()
	described := DescribedWorkflow{ID: id}
	described.QueryAny = func(workflowID string, state any) error { return queryState(parent, temporal, workflowID, state) }
	execution, err := temporal.DescribeWorkflowExecution(ctx, id, "")
	if err != nil {
		described.Status = fmt.Sprintf("unknown: %v", err)
		return described
	}
	described.Status = execution.WorkflowExecutionInfo.Status.String()
	if execution.WorkflowExecutionInfo.CloseTime != nil {
		return described
	}
	described.Retried = Retried(temporal, execution.PendingActivities)
	described.Query = described.QueryAny
	answer, err := temporal.QueryWorkflow(ctx, id, "", connect.QueryMetadata)
	if err != nil {
		described.Waiting = fmt.Sprintf("unknown, no worker answers: %v", err)
		return described
	}
	var metadata sdkpb.WorkflowMetadata
	if err := answer.Get(&metadata); err != nil {
		described.Waiting = fmt.Sprintf("unknown: %v", err)
		return described
	}
	described.Waiting = metadata.GetCurrentDetails()
	return described
}

func queryState(ctx context.Context, temporal *connect.Temporal, id string, state any) error {
	ctx, cancel := context.WithTimeout(ctx, DescribeTimeout)
	defer cancel()
	answer, err := temporal.QueryWorkflow(ctx, id, "", contract.QueryState)
	if err != nil {
		return err
	}
	return answer.Get(state)
}

// Retried says of each step that has failed and is retried its attempt and the last error.
func Retried(temporal *connect.Temporal, pending []*workflowpb.PendingActivityInfo) []string {
	var steps []string
	for _, step := range pending {
		if step.LastFailure == nil {
			continue
		}
		err := codec.FailureConverter(temporal.PayloadKeys).FailureToError(step.LastFailure)
		var application *temporalsdk.ApplicationError
		text := err.Error()
		if errors.As(err, &application) {
			text = application.Message()
		}
		steps = append(steps, fmt.Sprintf("%s, attempt %d: %s", step.ActivityType.GetName(), step.Attempt, text))
	}
	return steps
}
