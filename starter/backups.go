package main

import (
	"fmt"
	"io"
	"strings"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

var shownBackups = show[oadpv1alpha1.NonAdminBackupList](
	contract.KindBackup, "backup", backupColumns, backupRow, describeBackup,
)

// listedBackup is one row of `holdfast list backups`.
type listedBackup struct {
	listed
	QueuePosition *int `json:"queuePosition,omitempty"`
}

var backupColumns = columnsOf(func(b listedBackup) listed { return b.listed },
	column[listedBackup]{"VELERO-PHASE", func(b listedBackup) string { return b.VeleroPhase }},
	column[listedBackup]{"QUEUE", func(b listedBackup) string { return number(b.QueuePosition) }},
)

func backupRow(nab *oadpv1alpha1.NonAdminBackup, of listed) listedBackup {
	of.Phase = string(nab.Status.Phase)
	if velero := nab.Status.VeleroBackup; velero != nil && velero.Status != nil {
		of.VeleroPhase = string(velero.Status.Phase)
	}
	return listedBackup{listed: of, QueuePosition: queuePosition(nab.Status.QueueInfo)}
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
	Workflow  describedWorkflow                 `json:"workflow"`
}

func describeBackup(nab *oadpv1alpha1.NonAdminBackup, workflow workflowDescriber) description {
	return &describedBackup{
		Namespace: nab.Namespace, Name: nab.Name, Status: nab.Status, Workflow: workflow(contract.KindBackup, nab),
	}
}

func (d *describedBackup) print(out io.Writer) error {
	sheet := newSheet(out)
	sheet.line("Namespace", d.Namespace)
	sheet.line("Name", d.Name)
	sheet.line("Phase", string(d.Status.Phase))
	sheet.line("Queue position", number(queuePosition(d.Status.QueueInfo)))
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
