package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

var shownRestores = show[oadpv1alpha1.NonAdminRestoreList](
	contract.KindRestore, "restore", restoreColumns, restoreRow, describeRestore,
)

// listedRestore is one row of `holdfast list restores`. It is over when Finalization is Completed or PartiallyFailed: Velero's
// phase comes earlier.
type listedRestore struct {
	listed
	Finalization  string `json:"finalization,omitempty"`
	QueuePosition *int   `json:"queuePosition,omitempty"`
}

var restoreColumns = columnsOf(func(r listedRestore) listed { return r.listed },
	column[listedRestore]{"VELERO-PHASE", func(r listedRestore) string { return r.VeleroPhase }},
	column[listedRestore]{"FINALIZATION", func(r listedRestore) string { return r.Finalization }},
	column[listedRestore]{"QUEUE", func(r listedRestore) string { return number(r.QueuePosition) }},
)

func restoreRow(nar *oadpv1alpha1.NonAdminRestore, of listed) listedRestore {
	of.Phase = string(nar.Status.Phase)
	if velero := nar.Status.VeleroRestore; velero != nil && velero.Status != nil {
		of.VeleroPhase = string(velero.Status.Phase)
	}
	row := listedRestore{listed: of, QueuePosition: queuePosition(nar.Status.QueueInfo)}
	if nar.Status.Finalization != nil {
		row.Finalization = string(nar.Status.Finalization.Phase)
	}
	return row
}

// describedRestore is what `holdfast describe restore` shows.
type describedRestore struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Backup is the NonAdminBackup that is restored.
	Backup   string                             `json:"backup,omitempty"`
	Status   oadpv1alpha1.NonAdminRestoreStatus `json:"status"`
	Workflow describedWorkflow                  `json:"workflow"`
	// Finalization is the workflow that does what follows after Velero, while it does.
	Finalization *describedWorkflow `json:"finalization,omitempty"`
}

func describeRestore(nar *oadpv1alpha1.NonAdminRestore, workflow workflowDescriber) description {
	described := &describedRestore{
		Namespace: nar.Namespace, Name: nar.Name, Status: nar.Status, Workflow: workflow(contract.KindRestore, nar),
	}
	if nar.Spec.RestoreSpec != nil {
		described.Backup = nar.Spec.RestoreSpec.BackupName
	}
	if f := nar.Status.Finalization; f != nil && !f.Phase.Final() {
		finalization := workflow(contract.KindFinalization, nar)
		described.Finalization = &finalization
	}
	return described
}

func (d *describedRestore) print(out io.Writer) error {
	sheet := newSheet(out)
	sheet.line("Namespace", d.Namespace)
	sheet.line("Name", d.Name)
	sheet.line("Backup", d.Backup)
	sheet.line("Phase", string(d.Status.Phase))
	sheet.line("Queue position", number(queuePosition(d.Status.QueueInfo)))
	if velero := d.Status.VeleroRestore; velero != nil {
		sheet.line("Velero Restore", velero.Namespace+"/"+velero.Name)
		if velero.Status != nil {
			sheet.line("Velero phase", string(velero.Status.Phase))
			if progress := velero.Status.Progress; progress != nil {
				sheet.line("Items restored", fmt.Sprintf("%d of %d", progress.ItemsRestored, progress.TotalItems))
			}
			sheet.line("Errors, warnings", fmt.Sprintf("%d, %d", velero.Status.Errors, velero.Status.Warnings))
			sheet.line("Failure", velero.Status.FailureReason)
			sheet.line("Invalid", strings.Join(velero.Status.ValidationErrors, "\n"))
		}
	}
	if f := d.Status.Finalization; f != nil {
		sheet.line("Finalization", string(f.Phase)+took(f.StartTimestamp, f.CompletionTimestamp))
		sheet.line("Velero's errors", strings.Join(f.VeleroErrors, "\n"))
		for _, task := range f.Tasks {
			sheet.task(task)
		}
	}
	sheet.workflow(d.Workflow)
	if d.Finalization != nil {
		sheet.named("Finalization workflow", *d.Finalization)
	}
	sheet.conditions(d.Status.Conditions)
	return sheet.Flush()
}

func (s sheet) task(task oadpv1alpha1.FinalizationTask) {
	s.line("Task "+task.Name, string(task.Phase)+took(task.StartTimestamp, task.CompletionTimestamp))
	s.line("  errors", strings.Join(task.Errors, "\n"))
	s.line("  warnings", strings.Join(task.Warnings, "\n"))
}

// took says how long something took that is over.
func took(began, ended *metav1.Time) string {
	if began == nil || ended == nil {
		return ""
	}
	return fmt.Sprintf(" after %s", ended.Sub(began.Time).Round(time.Second))
}
