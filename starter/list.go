package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/api/workflowservice/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/workflows/connect"
	"holdfast.dev/holdfast/workflows/contract"
)

// listedBackup is one row of `holdfast list`.
type listedBackup struct {
	Namespace     string    `json:"namespace"`
	Name          string    `json:"name"`
	Phase         string    `json:"phase,omitempty"`
	VeleroPhase   string    `json:"veleroPhase,omitempty"`
	QueuePosition *int      `json:"queuePosition,omitempty"`
	Created       time.Time `json:"created"`
	// Workflow is "running", "none" or "unknown" (Temporal did not answer). A settled backup needs none.
	Workflow string `json:"workflow"`
}

// lister lists the objects of one kind in a tenant's namespace, or in all: the rows that programs read, and their table.
type lister func(
	ctx context.Context, flags *operatorFlags, namespace string, warnings io.Writer,
) (rows any, table func(io.Writer) error, err error)

var listers = map[string]lister{"backups": listBackups, "locations": listLocations, "approvals": listApprovals}

func listCommand() *cobra.Command {
	var flags operatorFlags
	var namespace string
	command := &cobra.Command{
		Use:   "list [backups|locations|approvals]",
		Short: "List the tenants' backups (the default), their storage locations, or what administrators have to approve",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			if err := flags.validate(); err != nil {
				return err
			}
			kind := "backups"
			if len(args) > 0 {
				kind = args[0]
			}
			list, known := listers[kind]
			if !known {
				return fmt.Errorf("list %q: want backups, locations or approvals", kind)
			}
			rows, table, err := list(command.Context(), &flags, namespace, command.ErrOrStderr())
			if err != nil {
				return err
			}
			return flags.print(command.OutOrStdout(), rows, table)
		},
	}
	flags.bind(command)
	command.Flags().StringVarP(&namespace, "namespace", "n", "", "only this namespace (default: all)")
	return command
}

func listBackups(
	ctx context.Context, flags *operatorFlags, namespace string, warnings io.Writer,
) (any, func(io.Writer) error, error) {
	kubeClient, temporal, err := flags.connect()
	if err != nil {
		return nil, nil, err
	}
	defer temporal.Close()
	var list oadpv1alpha1.NonAdminBackupList
	if err := kubeClient.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, nil, fmt.Errorf("list NonAdminBackups: %w", err)
	}
	running := runningOrUnknown(ctx, temporal, flags.clusterID, warnings)
	rows := make([]listedBackup, 0, len(list.Items))
	for i := range list.Items {
		rows = append(rows, row(&list.Items[i], flags.clusterID, running))
	}
	return rows, func(out io.Writer) error { return printRows(out, rows) }, nil
}

func row(nab *oadpv1alpha1.NonAdminBackup, clusterID string, running map[string]bool) listedBackup {
	listed := listedBackup{
		Namespace: nab.Namespace, Name: nab.Name, Phase: string(nab.Status.Phase),
		Created: nab.CreationTimestamp.Time, Workflow: workflowOf(clusterID, contract.KindBackup, nab, running),
	}
	if velero := nab.Status.VeleroBackup; velero != nil && velero.Status != nil {
		listed.VeleroPhase = string(velero.Status.Phase)
	}
	if queue := nab.Status.QueueInfo; queue != nil {
		listed.QueuePosition = &queue.EstimatedQueuePosition
	}
	return listed
}

// workflowOf is "running", "none" or, if Temporal did not answer, "unknown".
func workflowOf(clusterID string, kind contract.Kind, object client.Object, running map[string]bool) string {
	switch {
	case running == nil:
		return "unknown"
	case running[contract.WorkflowID(clusterID, kind, refOf(object))]:
		return "running"
	}
	return "none"
}

func refOf(object client.Object) contract.ObjectRef {
	return contract.ObjectRef{Namespace: object.GetNamespace(), Name: object.GetName(), UID: string(object.GetUID())}
}

// runningOrUnknown is runningWorkflows for a list that is worth showing while Temporal is away.
func runningOrUnknown(ctx context.Context, temporal *connect.Temporal, clusterID string, warnings io.Writer) map[string]bool {
	running, err := runningWorkflows(ctx, temporal, clusterID)
	if err != nil {
		fmt.Fprintf(warnings, "holdfast: Temporal does not answer, workflows are shown as unknown: %v\n", err)
	}
	return running
}

// runningWorkflows returns the IDs of the cluster's workflows that run, nil if Temporal does not answer.
func runningWorkflows(ctx context.Context, temporal *connect.Temporal, clusterID string) (map[string]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	running := map[string]bool{}
	var page []byte
	for {
		answer, err := temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Namespace:     temporal.Namespace,
			NextPageToken: page,
			Query: fmt.Sprintf("%s = '%s' AND ExecutionStatus = 'Running'",
				contract.AttributeCluster.GetName(), clusterID),
		})
		if err != nil {
			return nil, err
		}
		for _, execution := range answer.Executions {
			running[execution.Execution.WorkflowId] = true
		}
		if page = answer.NextPageToken; len(page) == 0 {
			return running, nil
		}
	}
}

func printRows(out io.Writer, rows []listedBackup) error {
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "NAMESPACE\tNAME\tPHASE\tVELERO-PHASE\tQUEUE\tAGE\tWORKFLOW")
	for _, r := range rows {
		position := ""
		if r.QueuePosition != nil {
			position = strconv.Itoa(*r.QueuePosition)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Namespace, r.Name, r.Phase, r.VeleroPhase, position,
			duration.HumanDuration(time.Since(r.Created)), r.Workflow)
	}
	return table.Flush()
}
