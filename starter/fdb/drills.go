package fdb

import (
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/activities/verdict"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/starter/operator"
	"holdfast.dev/holdfast/starter/terminal"
	"holdfast.dev/holdfast/workflows/contract"
)

// Drills is how FoundationDBDrills are listed and described.
var Drills = operator.Show[fdbv1alpha1.FoundationDBDrillList](
	contract.KindFDBDrill, "fdbdrill", fdbDrillColumns, fdbDrillRow, describeFDBDrill,
)

// listedFDBDrill is one row of `holdfast list fdbdrills`.
type listedFDBDrill struct {
	operator.Listed
	Backup   string       `json:"backup,omitempty"`
	Target   string       `json:"target,omitempty"`
	Verified string       `json:"verified,omitempty"`
	Reason   string       `json:"reason,omitempty"`
	Restore  *int64       `json:"restoreSeconds,omitempty"`
	Ended    *metav1.Time `json:"ended,omitempty"`
}

var fdbDrillColumns = operator.ColumnsOf(func(d listedFDBDrill) operator.Listed { return d.Listed },
	operator.NewColumn("BACKUP", func(d listedFDBDrill) string { return terminal.Printable(d.Backup) }),
	operator.NewColumn("TARGET", func(d listedFDBDrill) string { return terminal.Printable(d.Target) }),
	operator.NewColumn("VERIFIED", func(d listedFDBDrill) string { return d.Verified }),
	operator.NewColumn("REASON", func(d listedFDBDrill) string { return d.Reason }),
	operator.NewColumn("RESTORE", func(d listedFDBDrill) string { return operator.Seconds(d.Restore) }),
	operator.NewColumn("ENDED", func(d listedFDBDrill) string { return operator.Moment(d.Ended) }),
)

func fdbDrillRow(drill *fdbv1alpha1.FoundationDBDrill, of operator.Listed) listedFDBDrill {
	status := drill.Status
	of.Phase = terminal.Printable(string(status.Phase))
	row := listedFDBDrill{Listed: of, Backup: drill.Spec.BackupName, Target: drill.Spec.TargetClusterName, Ended: status.Ended}
	if verified := meta.FindStatusCondition(status.Conditions, holdfastv1alpha1.ConditionVerified); verified != nil {
		row.Verified, row.Reason = string(verified.Status), terminal.Printable(verified.Reason)
	}
	if measured := status.Measured; measured != nil && status.Restored != nil {
		row.Restore = &measured.RestoreSeconds
	}
	return row
}

// describedFDBDrill is what `holdfast describe fdbdrill` shows.
type describedFDBDrill struct {
	Namespace string                              `json:"namespace"`
	Name      string                              `json:"name"`
	Spec      fdbv1alpha1.FoundationDBDrillSpec   `json:"spec"`
	Status    fdbv1alpha1.FoundationDBDrillStatus `json:"status"`
	Workflow  operator.DescribedWorkflow          `json:"workflow"`
}

func describeFDBDrill(drill *fdbv1alpha1.FoundationDBDrill, workflow operator.WorkflowDescriber) operator.Description {
	return &describedFDBDrill{
		Namespace: drill.Namespace, Name: drill.Name, Spec: drill.Spec, Status: drill.Status,
		Workflow: workflow(contract.KindFDBDrill, drill),
	}
}

func (d *describedFDBDrill) Print(out io.Writer) error {
	sheet, status := operator.NewSheet(out), &d.Status
	sheet.Line("Namespace", d.Namespace)
	sheet.Line("Name", d.Name)
	sheet.Line("Phase", string(status.Phase))
	sheet.Line("Backup", d.Spec.BackupName)
	sheet.Line("URL", status.URL)
	sheet.Line("Version", versionText(status.Version))
	sheet.Line("Target", d.Spec.TargetClusterName)
	sheet.Line("Restore", status.Restore)
	sheet.Line("Compared by", status.Method)
	sheet.Line("Not covered", status.NotCovered)
	sheet.Line("Not cleared yet", status.Uncleared)
	sheet.Condition(status.Conditions, holdfastv1alpha1.ConditionVerified)
	for _, record := range status.Records {
		sheet.Line("Range "+record.Name, recordText(record))
	}
	if measured := status.Measured; measured != nil {
		if status.Restored != nil {
			sheet.Line("Restored in", operator.Seconds(&measured.RestoreSeconds))
		}
		sheet.Line("Keys", fmt.Sprint(measured.Keys))
		sheet.Line("Bytes", fmt.Sprint(measured.Bytes))
	}
	sheet.Findings(status.Findings, status.MoreFindings)
	sheet.Moment("Started", status.Started)
	sheet.Moment("Restoring since", status.Begun)
	sheet.Moment("Restored", status.Restored)
	sheet.Moment("Cleared", status.Cleared)
	sheet.Moment("Ended", status.Ended)
	sheet.Workflow(d.Workflow)
	return sheet.Flush()
}

// recordText is what the source held in a range.
func recordText(record fdbv1alpha1.DrillRangeRecord) string {
	if record.Digest == "" {
		return "not recorded"
	}
	return fmt.Sprintf("%s of %s, digest %s", verdict.Count(record.Keys, "key"), verdict.Count(record.Bytes, "byte"), record.Digest)
}
