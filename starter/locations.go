package main

import (
	"fmt"
	"io"
	"time"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

var shownLocations = show[oadpv1alpha1.NonAdminBackupStorageLocationList](
	contract.KindLocation, "location", locationColumns, locationRow, describeLocation,
)

// listedLocation is one row of `holdfast list locations`.
type listedLocation struct {
	listed
	// Approved is empty where no approval was asked for.
	Approved contract.Approval `json:"approved,omitempty"`
}

var locationColumns = columnsOf(func(l listedLocation) listed { return l.listed },
	column[listedLocation]{"APPROVED", func(l listedLocation) string { return string(l.Approved) }},
	column[listedLocation]{"VELERO-PHASE", func(l listedLocation) string { return l.VeleroPhase }},
)

func locationRow(nabsl *oadpv1alpha1.NonAdminBackupStorageLocation, of listed) listedLocation {
	of.Phase = string(nabsl.Status.Phase)
	if velero := nabsl.Status.VeleroBackupStorageLocation; velero != nil && velero.Status != nil {
		of.VeleroPhase = string(velero.Status.Phase)
	}
	return listedLocation{listed: of, Approved: clusterAdminApproved(nabsl.Status.Conditions)}
}

// describedLocation is what `holdfast describe location` shows.
type describedLocation struct {
	Namespace string                                           `json:"namespace"`
	Name      string                                           `json:"name"`
	Spec      oadpv1alpha1.NonAdminBackupStorageLocationSpec   `json:"spec"`
	Status    oadpv1alpha1.NonAdminBackupStorageLocationStatus `json:"status"`
	Workflow  describedWorkflow                                `json:"workflow"`
}

func describeLocation(nabsl *oadpv1alpha1.NonAdminBackupStorageLocation, workflow workflowDescriber) description {
	return &describedLocation{
		Namespace: nabsl.Namespace, Name: nabsl.Name, Spec: nabsl.Spec, Status: nabsl.Status,
		Workflow: workflow(contract.KindLocation, nabsl),
	}
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
