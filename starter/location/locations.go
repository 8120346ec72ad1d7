package location

import (
	"fmt"
	"io"
	"time"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/starter/operator"
	"holdfast.dev/holdfast/workflows/contract"
)

// Locations is how storage locations are listed and described.
var Locations = operator.Show[oadpv1alpha1.NonAdminBackupStorageLocationList](
	contract.KindLocation, "location", locationColumns, locationRow, describeLocation,
)

// listedLocation is one row of `holdfast list locations`.
type listedLocation struct {
	operator.Listed
	// Approved is empty if no approval was requested.
	Approved contract.Approval `json:"approved,omitempty"`
}

var locationColumns = operator.ColumnsOf(func(l listedLocation) operator.Listed { return l.Listed },
	operator.NewColumn("APPROVED", func(l listedLocation) string { return string(l.Approved) }),
	operator.NewColumn("VELERO-PHASE", func(l listedLocation) string { return l.VeleroPhase }),
)

func locationRow(nabsl *oadpv1alpha1.NonAdminBackupStorageLocation, of operator.Listed) listedLocation {
	of.Phase = string(nabsl.Status.Phase)
	if velero := nabsl.Status.VeleroBackupStorageLocation; velero != nil && velero.Status != nil {
		of.VeleroPhase = string(velero.Status.Phase)
	}
	return listedLocation{Listed: of, Approved: clusterAdminApproved(nabsl.Status.Conditions)}
}

// describedLocation is what `holdfast describe location` shows.
type describedLocation struct {
	Namespace string                                           `json:"namespace"`
	Name      string                                           `json:"name"`
	Spec      oadpv1alpha1.NonAdminBackupStorageLocationSpec   `json:"spec"`
	Status    oadpv1alpha1.NonAdminBackupStorageLocationStatus `json:"status"`
	Workflow  operator.DescribedWorkflow                       `json:"workflow"`
}

func describeLocation(
	nabsl *oadpv1alpha1.NonAdminBackupStorageLocation, workflow operator.WorkflowDescriber,
) operator.Description {
	return &describedLocation{
		Namespace: nabsl.Namespace, Name: nabsl.Name, Spec: nabsl.Spec, Status: nabsl.Status,
		Workflow: workflow(contract.KindLocation, nabsl),
	}
}

func (d *describedLocation) Print(out io.Writer) error {
	sheet := operator.NewSheet(out)
	sheet.Line("Namespace", d.Namespace)
	sheet.Line("Name", d.Name)
	sheet.Line("Phase", string(d.Status.Phase))
	sheet.Line("Approved", string(clusterAdminApproved(d.Status.Conditions)))
	if spec := d.Spec.BackupStorageLocationSpec; spec != nil {
		sheet.Line("Provider", spec.Provider)
		if spec.ObjectStorage != nil {
			sheet.Line("Bucket", spec.ObjectStorage.Bucket)
			sheet.Line("Prefix", spec.ObjectStorage.Prefix)
		}
		if spec.Credential != nil {
			sheet.Line("Credential", fmt.Sprintf("Secret %s, key %s", spec.Credential.Name, spec.Credential.Key))
		}
	}
	sheet.Line("Spec cannot be read", d.Spec.Unreadable)
	if velero := d.Status.VeleroBackupStorageLocation; velero != nil {
		if velero.Name != "" {
			sheet.Line("Velero location", velero.Namespace+"/"+velero.Name)
		}
		if velero.Status != nil {
			sheet.Line("Velero phase", string(velero.Status.Phase))
			sheet.Line("Velero message", velero.Status.Message)
			if validated := velero.Status.LastValidationTime; validated != nil {
				sheet.Line("Validated", validated.UTC().Format(time.RFC3339))
			}
		}
	}
	sheet.Workflow(d.Workflow)
	sheet.Conditions(d.Status.Conditions)
	return sheet.Flush()
}
