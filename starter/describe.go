package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	sdkpb "go.temporal.io/api/sdk/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/workflows/connect"
	"holdfast.dev/holdfast/workflows/contract"
)

const describeTimeout = 10 * time.Second

// describedBackup is what `holdfast describe backup` shows.
type describedBackup struct {
	Namespace string                            `json:"namespace"`
	Name      string                            `json:"name"`
	Status    oadpv1alpha1.NonAdminBackupStatus `json:"status"`
	Workflow  describedWorkflow                 `json:"workflow"`
}

type describedWorkflow struct {
	ID     string `json:"id"`
	Status string `json:"status"`
	// Waiting says what a running workflow waits for.
	Waiting string `json:"waiting,omitempty"`
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

var describers = map[string]describer{
	"backup": describeBackup, "location": describeLocation, "approval": describeApproval,
}

func describeCommand() *cobra.Command {
	var flags operatorFlags
	command := &cobra.Command{
		Use:     "describe KIND NAMESPACE/NAME",
		Short:   "Show one object, its Velero object and what its workflow waits for (KIND: backup, location or approval)",
		Example: "  holdfast describe backup shop/nightly\n  holdfast describe approval shop/offsite",
		Args:    cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, args []string) error {
			if err := flags.validate(); err != nil {
				return err
			}
			describe, known := describers[args[0]]
			if !known {
				return fmt.Errorf("describe %q: want KIND backup, location or approval", args[0])
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
			described, err := describe(command.Context(), &flags, kubeClient, workflow, key)
			if err != nil {
				return err
			}
			return flags.print(command.OutOrStdout(), described, described.print)
		},
	}
	flags.bind(command)
	return command
}

func describeBackup(
	ctx context.Context, _ *operatorFlags, kubeClient client.Client, workflow workflowDescriber, key types.NamespacedName,
) (description, error) {
	var nab oadpv1alpha1.NonAdminBackup
	if err := kubeClient.Get(ctx, key, &nab); err != nil {
		return nil, fmt.Errorf("get NonAdminBackup %s: %w", key, err)
	}
	return &describedBackup{
		Namespace: nab.Namespace, Name: nab.Name, Status: nab.Status, Workflow: workflow(contract.KindBackup, &nab),
	}, nil
}

// describeWorkflow never fails: the object itself is worth showing while Temporal is away.
func describeWorkflow(ctx context.Context, temporal *connect.Temporal, id string) describedWorkflow {
	ctx, cancel := context.WithTimeout(ctx, describeTimeout)
	defer cancel()
	described := describedWorkflow{ID: id}
	execution, err := temporal.DescribeWorkflowExecution(ctx, id, "")
	if err != nil {
		described.Status = fmt.Sprintf("unknown: %v", err)
		return described
	}
	described.Status = execution.WorkflowExecutionInfo.Status.String()
	if execution.WorkflowExecutionInfo.CloseTime != nil {
		return described
	}
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

func (d *describedBackup) print(out io.Writer) error {
	sheet := newSheet(out)
	sheet.line("Namespace", d.Namespace)
	sheet.line("Name", d.Name)
	sheet.line("Phase", string(d.Status.Phase))
	if queue := d.Status.QueueInfo; queue != nil {
		sheet.line("Queue position", fmt.Sprint(queue.EstimatedQueuePosition))
	}
	if velero := d.Status.VeleroBackup; velero != nil {
		sheet.line("Velero Backup", velero.Namespace+"/"+velero.Name)
		if velero.Status != nil {
			sheet.line("Velero phase", string(velero.Status.Phase))
			sheet.line("Errors, warnings", fmt.Sprintf("%d, %d", velero.Status.Errors, velero.Status.Warnings))
			sheet.line("Failure", velero.Status.FailureReason)
		}
	}
	if request := d.Status.VeleroDeleteBackupRequest; request != nil && request.Status != nil {
		sheet.line("Delete request",
			fmt.Sprintf("%s %s %s", request.Name, request.Status.Phase, strings.Join(request.Status.Errors, "; ")))
	}
	sheet.workflow(d.Workflow)
	sheet.conditions(d.Status.Conditions)
	return sheet.Flush()
}
