package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	sdkpb "go.temporal.io/api/sdk/v1"
	"k8s.io/apimachinery/pkg/types"

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

func describeCommand() *cobra.Command {
	var flags operatorFlags
	command := &cobra.Command{
		Use:     "describe KIND NAMESPACE/NAME",
		Short:   "Show one object, its Velero object and what its workflow waits for (KIND: backup)",
		Example: "  holdfast describe backup shop/nightly",
		Args:    cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, args []string) error {
			if err := flags.validate(); err != nil {
				return err
			}
			if args[0] != "backup" {
				return fmt.Errorf("describe %q: want KIND backup", args[0])
			}
			namespace, name, found := strings.Cut(args[1], "/")
			if !found || namespace == "" || name == "" {
				return fmt.Errorf("describe backup %q: want NAMESPACE/NAME", args[1])
			}
			described, err := describe(command.Context(), &flags, types.NamespacedName{Namespace: namespace, Name: name})
			if err != nil {
				return err
			}
			return flags.print(command.OutOrStdout(), described, described.print)
		},
	}
	flags.bind(command)
	return command
}

func describe(ctx context.Context, flags *operatorFlags, key types.NamespacedName) (*describedBackup, error) {
	kubeClient, temporal, err := flags.connect()
	if err != nil {
		return nil, err
	}
	defer temporal.Close()
	var nab oadpv1alpha1.NonAdminBackup
	if err := kubeClient.Get(ctx, key, &nab); err != nil {
		return nil, fmt.Errorf("get NonAdminBackup %s: %w", key, err)
	}
	id := contract.WorkflowID(flags.clusterID, contract.KindBackup, refOf(&nab))
	return &describedBackup{
		Namespace: nab.Namespace, Name: nab.Name, Status: nab.Status,
		Workflow: describeWorkflow(ctx, temporal, id),
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
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(table, "%s:\t%s\n", name, value)
		}
	}
	line("Namespace", d.Namespace)
	line("Name", d.Name)
	line("Phase", string(d.Status.Phase))
	if queue := d.Status.QueueInfo; queue != nil {
		line("Queue position", fmt.Sprint(queue.EstimatedQueuePosition))
	}
	if velero := d.Status.VeleroBackup; velero != nil {
		line("Velero Backup", velero.Namespace+"/"+velero.Name)
		if velero.Status != nil {
			line("Velero phase", string(velero.Status.Phase))
			line("Errors, warnings", fmt.Sprintf("%d, %d", velero.Status.Errors, velero.Status.Warnings))
			line("Failure", velero.Status.FailureReason)
		}
	}
	if request := d.Status.VeleroDeleteBackupRequest; request != nil && request.Status != nil {
		line("Delete request", fmt.Sprintf("%s %s %s", request.Name, request.Status.Phase, strings.Join(request.Status.Errors, "; ")))
	}
	line("Workflow", d.Workflow.ID)
	line("Workflow status", d.Workflow.Status)
	line("Waiting", d.Workflow.Waiting)
	for _, condition := range d.Status.Conditions {
		line("Condition "+condition.Type, fmt.Sprintf("%s (%s) %s", condition.Status, condition.Reason, condition.Message))
	}
	return table.Flush()
}
