package velero

import (
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/starter/operator"
	"holdfast.dev/holdfast/starter/terminal"
	"holdfast.dev/holdfast/workflows/contract"
)

// Drills is how RestoreDrills are listed and described.
var Drills = operator.Show[holdfastv1alpha1.RestoreDrillList](contract.KindDrill, "drill", drillColumns, drillRow, describeDrill)

// listedDrill is one row of `holdfast list drills`.
type listedDrill struct {
	operator.Listed
	Backup   string       `json:"backup,omitempty"`
	Verified string       `json:"verified,omitempty"`
	Reason   string       `json:"reason,omitempty"`
	Recovery *int64       `json:"recoverySeconds,omitempty"`
	Ended    *metav1.Time `json:"ended,omitempty"`
}

var drillColumns = operator.ColumnsOf(func(d listedDrill) operator.Listed { return d.Listed },
	operator.NewColumn("BACKUP", func(d listedDrill) string { return terminal.Printable(d.Backup) }),
	operator.NewColumn("VERIFIED", func(d listedDrill) string { return d.Verified }),
	operator.NewColumn("REASON", func(d listedDrill) string { return d.Reason }),
	operator.NewColumn("RECOVERY", func(d listedDrill) string { return operator.Seconds(d.Recovery) }),
	operator.NewColumn("ENDED", func(d listedDrill) string { return operator.Moment(d.Ended) }),
)

func drillRow(drill *holdfastv1alpha1.RestoreDrill, of operator.Listed) listedDrill {
	status := drill.Status
	of.Phase = string(status.Phase)
	row := listedDrill{Listed: of, Backup: backupOf(drill.Spec, status), Ended: status.Ended}
	if verified := meta.FindStatusCondition(status.Conditions, holdfastv1alpha1.ConditionVerified); verified != nil {
		row.Verified, row.Reason = string(verified.Status), verified.Reason
	}
	if measured := status.Measured; measured != nil && row.Verified == string(metav1.ConditionTrue) {
		recovery := measured.RestoreSeconds + measured.ReadySeconds
		row.Recovery = &recovery
	}
	return row
}

// backupOf is the backup of a drill, of a drill that has not chosen one what it was to choose.
func backupOf(spec holdfastv1alpha1.RestoreDrillSpec, status holdfastv1alpha1.RestoreDrillStatus) string {
	switch {
	case status.Backup != "":
		return status.Backup
	case spec.PlanName != "":
		return "last good of plan " + spec.PlanName
	}
	return spec.BackupName
}

// describedDrill is what `holdfast describe drill` shows.
type describedDrill struct {
	Namespace string                              `json:"namespace"`
	Name      string                              `json:"name"`
	Spec      holdfastv1alpha1.RestoreDrillSpec   `json:"spec"`
	Status    holdfastv1alpha1.RestoreDrillStatus `json:"status"`
	Workflow  operator.DescribedWorkflow          `json:"workflow"`
}

func describeDrill(drill *holdfastv1alpha1.RestoreDrill, workflow operator.WorkflowDescriber) operator.Description {
	return &describedDrill{
		Namespace: drill.Namespace, Name: drill.Name, Spec: drill.Spec, Status: drill.Status,
		Workflow: workflow(contract.KindDrill, drill),
	}
}

func (d *describedDrill) Print(out io.Writer) error {
	sheet, status := operator.NewSheet(out), &d.Status
	sheet.Line("Namespace", d.Namespace)
	sheet.Line("Name", d.Name)
	sheet.Line("Phase", string(status.Phase))
	sheet.Line("Backup", backupOf(d.Spec, d.Status))
	sheet.Line("Namespace of the drill", status.Namespace)
	sheet.Condition(status.Conditions, holdfastv1alpha1.ConditionVerified)
	sheet.Condition(status.Conditions, holdfastv1alpha1.ConditionQueued)
	for _, check := range status.Checks {
		sheet.Line("Check "+check.Name, string(check.Result))
	}
	if measured := status.Measured; measured != nil {
		if status.Restored != nil {
			sheet.Line("Restore took", operator.Seconds(&measured.RestoreSeconds))
		}
		if status.Ready != nil {
			sheet.Line("Ready after", operator.Seconds(&measured.ReadySeconds))
		}
		sheet.Line("Objects", fmt.Sprint(measured.Objects))
		if measured.Bytes > 0 {
			sheet.Line("Bytes of volumes", fmt.Sprint(measured.Bytes))
		}
	}
	sheet.Findings(status.Findings, status.MoreFindings)
	sheet.Moment("Started", status.Started)
	sheet.Moment("Restored", status.Restored)
	sheet.Moment("Ready", status.Ready)
	sheet.Moment("Kept until", status.KeptUntil)
	sheet.Moment("Ended", status.Ended)
	sheet.Workflow(d.Workflow)
	return sheet.Flush()
}
