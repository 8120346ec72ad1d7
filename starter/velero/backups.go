package velero

import (
	"fmt"
	"io"
	"strings"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/starter/operator"
	"holdfast.dev/holdfast/workflows/contract"
)

// Backups is how NonAdminBackups are listed and described.
var Backups = operator.Show[oadpv1alpha1.NonAdminBackupList](
	contract.KindBackup, "backup", backupColumns, backupRow, describeBackup,
)

// listedBackup is one row of `holdfast list backups`.
type listedBackup struct {
	operator.Listed
	QueuePosition *int `json:"queuePosition,omitempty"`
}

var backupColumns = operator.ColumnsOf(func(b listedBackup) operator.Listed { return b.Listed },
	operator.NewColumn("VELERO-PHASE", func(b listedBackup) string { return b.VeleroPhase }),
	operator.NewColumn("QUEUE", func(b listedBackup) string { return operator.Number(b.QueuePosition) }),
)

func backupRow(nab *oadpv1alpha1.NonAdminBackup, of operator.Listed) listedBackup {
	of.Phase = string(nab.Status.Phase)
	if velero := nab.Status.VeleroBackup; velero != nil && velero.Status != nil {
		of.VeleroPhase = string(velero.Status.Phase)
	}
	return listedBackup{Listed: of, QueuePosition: queuePosition(nab.Status.QueueInfo)}
}

// queuePosition is the place in Velero's queue; nil if it is not known.
func queuePosition(queue *oadpv1alpha1.QueueInfo) *int {
	if queue == nil {
		return nil
	}
	return &queue.EstimatedQueuePosition
}

// describedBackup is what `holdfast describe backup` shows.
type describedBackup struct {
	Namespace string                            `json:"namespace"`
	Name      string                            `json:"name"`
	Status    oadpv1alpha1.NonAdminBackupStatus `json:"status"`
	Workflow  operator.DescribedWorkflow        `json:"workflow"`
}

func describeBackup(nab *oadpv1alpha1.NonAdminBackup, workflow operator.WorkflowDescriber) operator.Description {
	return &describedBackup{
		Namespace: nab.Namespace, Name: nab.Name, Status: nab.Status, Workflow: workflow(contract.KindBackup, nab),
	}
}

func (d *describedBackup) Print(out io.Writer) error {
	sheet := operator.NewSheet(out)
	sheet.Line("Namespace", d.Namespace)
	sheet.Line("Name", d.Name)
	sheet.Line("Phase", string(d.Status.Phase))
	sheet.Line("Queue position", operator.Number(queuePosition(d.Status.QueueInfo)))
	if velero := d.Status.VeleroBackup; velero != nil {
		sheet.Line("Velero Backup", velero.Namespace+"/"+velero.Name)
		if velero.Status != nil {
			sheet.Line("Velero phase", string(velero.Status.Phase))
			sheet.Line("Errors, warnings", fmt.Sprintf("%d, %d", velero.Status.Errors, velero.Status.Warnings))
			sheet.Line("Failure", velero.Status.FailureReason)
		}
	}
	if request := d.Status.VeleroDeleteBackupRequest; request != nil && request.Status != nil {
		sheet.Line("Delete request",
			fmt.Sprintf("%s %s %s", request.Name, request.Status.Phase, strings.Join(request.Status.Errors, "; ")))
	}
	sheet.Workflow(d.Workflow)
	sheet.Conditions(d.Status.Conditions)
	return sheet.Flush()
}
