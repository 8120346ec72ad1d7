package velero

import (
	"fmt"
	"io"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/lifecycle"
	"holdfast.dev/holdfast/starter/operator"
	"holdfast.dev/holdfast/workflows/contract"
)

// Restores is how NonAdminRestores are listed and described.
var Restores = operator.Show[oadpv1alpha1.NonAdminRestoreList](
	contract.KindRestore, "restore", restoreColumns, restoreRow, describeRestore,
)

// listedRestore is one row of `holdfast list restores`. It is over when Finalization is Completed or PartiallyFailed: Velero's
// phase comes earlier.
type listedRestore struct {
	operator.Listed
	Finalization  string `json:"finalization,omitempty"`
	QueuePosition *int   `json:"queuePosition,omitempty"`
}

var restoreColumns = operator.ColumnsOf(func(r listedRestore) operator.Listed { return r.Listed },
	operator.NewColumn("VELERO-PHASE", func(r listedRestore) string { return r.VeleroPhase }),
	operator.NewColumn("FINALIZATION", func(r listedRestore) string { return r.Finalization }),
	operator.NewColumn("QUEUE", func(r listedRestore) string { return operator.Number(r.QueuePosition) }),
)

func restoreRow(nar *oadpv1alpha1.NonAdminRestore, of operator.Listed) listedRestore {
	of.Phase = string(nar.Status.Phase)
	if velero := nar.Status.VeleroRestore; velero != nil && velero.Status != nil {
		of.VeleroPhase = string(velero.Status.Phase)
	}
	return listedRestore{
		Listed: of, QueuePosition: queuePosition(nar.Status.QueueInfo), Finalization: string(lifecycle.FinalizationPhase(nar)),
	}
}

// describedRestore is what `holdfast describe restore` shows.
type describedRestore struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Backup is the NonAdminBackup that is restored.
	Backup   string                             `json:"backup,omitempty"`
	Status   oadpv1alpha1.NonAdminRestoreStatus `json:"status"`
	Workflow operator.DescribedWorkflow         `json:"workflow"`
	// Finalization is the workflow that does what follows after Velero, while it does.
	Finalization *operator.DescribedWorkflow `json:"finalization,omitempty"`
}

func describeRestore(nar *oadpv1alpha1.NonAdminRestore, workflow operator.WorkflowDescriber) operator.Description {
	described := &describedRestore{
		Namespace: nar.Namespace, Name: nar.Name, Status: nar.Status, Workflow: workflow(contract.KindRestore, nar),
	}
	if nar.Spec.RestoreSpec != nil {
		described.Backup = nar.Spec.RestoreSpec.BackupName
	}
	if phase := lifecycle.FinalizationPhase(nar); phase != "" && !phase.Final() {
		finalization := workflow(contract.KindFinalization, nar)
		described.Finalization = &finalization
	}
	return described
}

func (d *describedRestore) Print(out io.Writer) error {
	sheet := operator.NewSheet(out)
	sheet.Line("Namespace", d.Namespace)
	sheet.Line("Name", d.Name)
	sheet.Line("Backup", d.Backup)
	sheet.Line("Phase", string(d.Status.Phase))
	sheet.Line("Queue position", operator.Number(queuePosition(d.Status.QueueInfo)))
	if velero := d.Status.VeleroRestore; velero != nil {
		sheet.Line("Velero Restore", velero.Namespace+"/"+velero.Name)
		if velero.Status != nil {
			sheet.Line("Velero phase", string(velero.Status.Phase))
			if progress := velero.Status.Progress; progress != nil {
				sheet.Line("Items restored", fmt.Sprintf("%d of %d", progress.ItemsRestored, progress.TotalItems))
			}
			sheet.Line("Errors, warnings", fmt.Sprintf("%d, %d", velero.Status.Errors, velero.Status.Warnings))
			sheet.Line("Failure", velero.Status.FailureReason)
			sheet.Line("Invalid", strings.Join(velero.Status.ValidationErrors, "\n"))
		}
	}
	if f := d.Status.Finalization; f != nil {
		sheet.Line("Finalization", string(f.Phase)+took(f.StartTimestamp, f.CompletionTimestamp))
		sheet.Line("Velero's errors", strings.Join(f.VeleroErrors, "\n"))
		for _, task := range f.Tasks {
			showTask(sheet, task)
		}
	}
	sheet.Workflow(d.Workflow)
	if d.Finalization != nil {
		sheet.Named("Finalization workflow", *d.Finalization)
	}
	sheet.Conditions(d.Status.Conditions)
	return sheet.Flush()
}

func showTask(s operator.Sheet, task oadpv1alpha1.FinalizationTask) {
	s.Line("Task "+task.Name, string(task.Phase)+took(task.StartTimestamp, task.CompletionTimestamp))
	s.Line("  errors", strings.Join(task.Errors, "\n"))
	s.Line("  warnings", strings.Join(task.Warnings, "\n"))
}

// took says how long something took that is over.
func took(began, ended *metav1.Time) string {
	if began == nil || ended == nil {
		return ""
	}
	return fmt.Sprintf(" after %s", ended.Sub(began.Time).Round(time.Second))
}
