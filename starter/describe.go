package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	sdkpb "go.temporal.io/api/sdk/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	temporalsdk "go.temporal.io/sdk/temporal"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/workflows/codec"
	"holdfast.dev/holdfast/workflows/connect"
	"holdfast.dev/holdfast/workflows/contract"
)

const describeTimeout = 10 * time.Second

type describedWorkflow struct {
	ID     string `json:"id"`
	Status string `json:"status"`
	// Waiting says what a running workflow waits for.
	Waiting string `json:"waiting,omitempty"`
	// Retried are the steps that have failed and are tried again, each with its attempt and what it failed of. A step of a
	// finalization that waits is one of them.
	Retried []string `json:"retried,omitempty"`
	// query asks a workflow, this one or another, for its state (contract.QueryState); nil unless this one runs.
	query func(workflowID string, state any) error
	// ask asks any workflow for its state, also if this one does not run; nil without Temporal.
	ask func(workflowID string, state any) error
}

// description is what is shown of one object.
type description interface {
	print(out io.Writer) error
}

// describer reads one object of a kind and describes its workflow.
type describer func(
	ctx context.Context, flags *operatorFlags, kubeClient client.Client, workflow workflowDescriber, key types.NamespacedName,
) (description, error)

// workflowDescriber describes the workflow that serves a tenant's object.
type workflowDescriber func(kind contract.Kind, object client.Object) describedWorkflow

// describerOf makes the describer of a kind of the tenants' objects from what describes one that was read.
func describerOf[T any, Object interface {
	*T
	client.Object
}](kind contract.Kind, describe func(Object, workflowDescriber) description) describer {
	return func(
		ctx context.Context, _ *operatorFlags, kubeClient client.Client, workflow workflowDescriber, key types.NamespacedName,
	) (description, error) {
		object := Object(new(T))
		if err := kubeClient.Get(ctx, key, object); err != nil {
			return nil, fmt.Errorf("get %s %s: %w", kind.Kubernetes, key, err)
		}
		return describe(object, workflow), nil
	}
}

func describeCommand() *cobra.Command {
	var flags operatorFlags
	command := &cobra.Command{
		Use:     "describe KIND NAMESPACE/NAME",
		Short:   "Show one object and what its workflow waits for (KIND: " + strings.Join(singulars(), ", ") + ")",
		Example: "  holdfast describe backup shop/nightly\n  holdfast describe approval shop/offsite",
		Args:    cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, args []string) error {
			if err := flags.validate(); err != nil {
				return err
			}
			at := slices.Index(singulars(), args[0])
			if at < 0 {
				return fmt.Errorf("describe %q: want KIND %s", args[0], either(singulars()))
			}
			key, err := tenantObject(args[1])
			if err != nil {
				return fmt.Errorf("describe %s %w", args[0], err)
			}
			kubeClient, temporal, err := flags.connect()
			if err != nil {
				return err
			}
			defer temporal.Close()
			workflow := func(kind contract.Kind, object client.Object) describedWorkflow {
				return describeWorkflow(command.Context(), temporal, contract.WorkflowID(flags.clusterID, kind, refOf(object)))
			}
			described, err := shownKinds()[at].describe(command.Context(), &flags, kubeClient, workflow, key)
			if err != nil {
				return err
			}
			return flags.print(command.OutOrStdout(), described, described.print)
		},
	}
	flags.bind(command)
	return command
}

// describeWorkflow never fails: the object itself is worth showing while Temporal is away.
func describeWorkflow(parent context.Context, temporal *connect.Temporal, id string) describedWorkflow {
	ctx, cancel := context.WithTimeout(parent, describeTimeout)
	defer cancel()
	described := describedWorkflow{ID: id}
	described.ask = func(workflowID string, state any) error { return queryState(parent, temporal, workflowID, state) }
	execution, err := temporal.DescribeWorkflowExecution(ctx, id, "")
	if err != nil {
		described.Status = fmt.Sprintf("unknown: %v", err)
		return described
	}
	described.Status = execution.WorkflowExecutionInfo.Status.String()
	if execution.WorkflowExecutionInfo.CloseTime != nil {
		return described
	}
	described.Retried = retried(temporal, execution.PendingActivities)
	described.query = described.ask
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
	ctx, cancel := context.WithTimeout(ctx, describeTimeout)
	defer cancel()
	answer, err := temporal.QueryWorkflow(ctx, id, "", contract.QueryState)
	if err != nil {
		return err
	}
	return answer.Get(state)
}

// retried says of each step that has failed and is tried again what it failed of last.
func retried(temporal *connect.Temporal, pending []*workflowpb.PendingActivityInfo) []string {
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
