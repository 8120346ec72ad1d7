package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

// listedLocation is one row of `holdfast list locations`.
type listedLocation struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Phase     string `json:"phase,omitempty"`
	// Approved is empty where no approval was asked for.
	Approved    contract.Approval `json:"approved,omitempty"`
	VeleroPhase string            `json:"veleroPhase,omitempty"`
	Created     time.Time         `json:"created"`
	// Workflow is "running", "none" or "unknown" (Temporal did not answer).
	Workflow string `json:"workflow"`
}

func listLocations(
	ctx context.Context, flags *operatorFlags, namespace string, warnings io.Writer,
) (any, func(io.Writer) error, error) {
	kubeClient, temporal, err := flags.connect()
	if err != nil {
		return nil, nil, err
	}
	defer temporal.Close()
	var list oadpv1alpha1.NonAdminBackupStorageLocationList
	if err := kubeClient.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, nil, fmt.Errorf("list NonAdminBackupStorageLocations: %w", err)
	}
	running := runningOrUnknown(ctx, temporal, flags.clusterID, warnings)
	rows := make([]listedLocation, 0, len(list.Items))
	for i := range list.Items {
		rows = append(rows, locationRow(&list.Items[i], flags.clusterID, running))
	}
	return rows, func(out io.Writer) error { return printLocations(out, rows) }, nil
}

func locationRow(
	nabsl *oadpv1alpha1.NonAdminBackupStorageLocation, clusterID string, running map[string]bool,
) listedLocation {
	listed := listedLocation{
		Namespace: nabsl.Namespace, Name: nabsl.Name, Phase: string(nabsl.Status.Phase),
		Approved: clusterAdminApproved(nabsl.Status.Conditions), Created: nabsl.CreationTimestamp.Time,
		Workflow: workflowOf(clusterID, contract.KindLocation, nabsl, running),
	}
	if velero := nabsl.Status.VeleroBackupStorageLocation; velero != nil && velero.Status != nil {
		listed.VeleroPhase = string(velero.Status.Phase)
	}
	return listed
}

func printLocations(out io.Writer, rows []listedLocation) error {
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "NAMESPACE\tNAME\tPHASE\tAPPROVED\tVELERO-PHASE\tAGE\tWORKFLOW")
	for _, r := range rows {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Namespace, r.Name, r.Phase, r.Approved, r.VeleroPhase,
			duration.HumanDuration(time.Since(r.Created)), r.Workflow)
	}
	return table.Flush()
}

// describedLocation is what `holdfast describe location` shows.
type describedLocation struct {
	Namespace string                                           `json:"namespace"`
	Name      string                                           `json:"name"`
	Spec      oadpv1alpha1.NonAdminBackupStorageLocationSpec   `json:"spec"`
	Status    oadpv1alpha1.NonAdminBackupStorageLocationStatus `json:"status"`
	Workflow  describedWorkflow                                `json:"workflow"`
}

func describeLocation(
	ctx context.Context, _ *operatorFlags, kubeClient client.Client, workflow workflowDescriber, key types.NamespacedName,
) (description, error) {
	var nabsl oadpv1alpha1.NonAdminBackupStorageLocation
	if err := kubeClient.Get(ctx, key, &nabsl); err != nil {
		return nil, fmt.Errorf("get NonAdminBackupStorageLocation %s: %w", key, err)
	}
	return &describedLocation{
		Namespace: nabsl.Namespace, Name: nabsl.Name, Spec: nabsl.Spec, Status: nabsl.Status,
		Workflow: workflow(contract.KindLocation, &nabsl),
	}, nil
}

func (d *describedLocation) print(out io.Writer) error {
	sheet := newSheet(out)
	sheet.line("Namespace", d.Namespace)
	sheet.line("Name", d.Name)
	sheet.line("Phase", string(d.Status.Phase))
	sheet.line("Approved", string(clusterAdminApproved(d.Status.Conditions)))
	if spec := d.Spec.BackupStorageLocationSpec; spec != nil {
		sheet.line("Provider", spec.Provider)
		if spec.ObjectStorage != nil {
			sheet.line("Bucket", spec.ObjectStorage.Bucket)
			sheet.line("Prefix", spec.ObjectStorage.Prefix)
		}
		if spec.Credential != nil {
			sheet.line("Credential", fmt.Sprintf("Secret %s, key %s", spec.Credential.Name, spec.Credential.Key))
		}
	}
	sheet.line("Spec cannot be read", d.Spec.Unreadable)
	if velero := d.Status.VeleroBackupStorageLocation; velero != nil {
		if velero.Name != "" {
			sheet.line("Velero location", velero.Namespace+"/"+velero.Name)
		}
		if velero.Status != nil {
			sheet.line("Velero phase", string(velero.Status.Phase))
			sheet.line("Velero message", velero.Status.Message)
			if validated := velero.Status.LastValidationTime; validated != nil {
				sheet.line("Validated", validated.UTC().Format(time.RFC3339))
			}
		}
	}
	sheet.workflow(d.Workflow)
	sheet.conditions(d.Status.Conditions)
	return sheet.Flush()
}
