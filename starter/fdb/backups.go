package fdb

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/starter/operator"
	"holdfast.dev/holdfast/starter/terminal"
	"holdfast.dev/holdfast/workflows/contract"
)

// Backups is how FoundationDBBackups are listed and described.
var Backups = operator.Show[fdbv1alpha1.FoundationDBBackupList](
	contract.KindFDBBackup, "fdbbackup", fdbBackupColumns, fdbBackupRow, describeFDBBackup,
)

// listedFDBBackup is one row of `holdfast list fdbbackups`. Its phase is FoundationDB's name of the newest backup's state.
type listedFDBBackup struct {
	operator.Listed
	Wanted     string `json:"wanted"`
	Reconciled bool   `json:"reconciled"`
	// Reasons are those of the conditions: why it is not as the spec says.
	Reasons          []string   `json:"reasons,omitempty"`
	OldestData       *time.Time `json:"oldestData,omitempty"`
	LatestRestorable *time.Time `json:"latestRestorable,omitempty"`
	// LagSeconds is the age of the latest restorable point: later changes could not be restored.
	LagSeconds *int64 `json:"lagSeconds,omitempty"`
}

var fdbBackupColumns = operator.ColumnsOf(func(b listedFDBBackup) operator.Listed { return b.Listed },
	operator.NewColumn("WANTED", func(b listedFDBBackup) string { return b.Wanted }),
	operator.NewColumn("RECONCILED", func(b listedFDBBackup) string { return strconv.FormatBool(b.Reconciled) }),
	operator.NewColumn("REASONS", func(b listedFDBBackup) string { return strings.Join(b.Reasons, ",") }),
	operator.NewColumn("OLDEST-DATA", func(b listedFDBBackup) string { return operator.Moment(b.OldestData) }),
	operator.NewColumn("LATEST-RESTORABLE", func(b listedFDBBackup) string { return operator.Moment(b.LatestRestorable) }),
	operator.NewColumn("LAG", func(b listedFDBBackup) string { return lagText(b.LagSeconds) }),
)

func fdbBackupRow(object *fdbv1alpha1.FoundationDBBackup, of operator.Listed) listedFDBBackup {
	row := listedFDBBackup{
		Listed: of, Wanted: wantedState(object),
		Reconciled: object.Status.Reconciled && object.Status.ObservedGeneration == object.Generation,
	}
	for _, condition := range fdbv1alpha1.Unmet(object.Status.Conditions) {
		row.Reasons = append(row.Reasons, terminal.Printable(condition.Reason))
	}
	for _, entry := range object.Status.Backups {
		row.Phase = terminal.Printable(entry.State)
		if oldest := pointTime(entry.OldestData); oldest != nil && row.OldestData == nil {
			row.OldestData = oldest
		}
		latest := pointTime(entry.LatestRestorable)
		if latest != nil && (row.LatestRestorable == nil || latest.After(*row.LatestRestorable)) {
			row.LatestRestorable = latest
		}
	}
	if !object.DeletionTimestamp.IsZero() {
		row.Phase = "Deleting"
	}
	if row.LatestRestorable != nil && row.Wanted == string(fdbv1alpha1.BackupStateRunning) {
		lag := lagOf(*row.LatestRestorable)
		row.LagSeconds = &lag
	}
	return row
}

// wantedState returns spec.backupState, or its default for an object that was stored without it.
func wantedState(object *fdbv1alpha1.FoundationDBBackup) string {
	if object.Spec.BackupState == "" {
		return string(fdbv1alpha1.BackupStateRunning)
	}
	return string(object.Spec.BackupState)
}

func pointTime(point *fdbv1alpha1.RestorePoint) *time.Time {
	if point == nil || point.Timestamp == nil {
		return nil
	}
	at := point.Timestamp.UTC()
	return &at
}

// lagOf returns the age of a point, at least 0: FoundationDB's clock may be ahead of ours.
func lagOf(latest time.Time) int64 { return max(0, int64(time.Since(latest)/time.Second)) }

func lagText(seconds *int64) string {
	if seconds == nil {
		return ""
	}
	return (time.Duration(*seconds) * time.Second).String()
}

// describedFDBBackup is what `holdfast describe fdbbackup` shows.
type describedFDBBackup struct {
	Namespace  string                               `json:"namespace"`
	Name       string                               `json:"name"`
	Generation int64                                `json:"generation"`
	Deleting   bool                                 `json:"deleting,omitempty"`
	Spec       fdbv1alpha1.FoundationDBBackupSpec   `json:"spec"`
	Status     fdbv1alpha1.FoundationDBBackupStatus `json:"status"`
	// State is the workflow's: its last findings and what it waits for. Nil if it does not run, or no worker answers.
	State *contract.FDBBackupState `json:"state,omitempty"`
	// FirstSnapshots lists the backups that have a slot or wait for one; only if this backup is one of them.
	FirstSnapshots *contract.FDBThrottleState `json:"firstSnapshots,omitempty"`
	// Owner is the state of the workflow that owns the FoundationDB cluster.
	Owner *contract.FDBClusterState `json:"owner,omitempty"`
	// Expirations is this backup's place in the queue of expirations; nil if it needs none.
	Expirations *describedTurn `json:"expirations,omitempty"`
	// Unknown lists what could not be queried.
	Unknown  []string                   `json:"unknown,omitempty"`
	Workflow operator.DescribedWorkflow `json:"workflow"`

	wanted string
	// held: the object is being deleted, and its backup has not ended yet.
	held bool
}

func describeFDBBackup(object *fdbv1alpha1.FoundationDBBackup, workflow operator.WorkflowDescriber) operator.Description {
	described := &describedFDBBackup{
		Namespace: object.Namespace, Name: object.Name, Generation: object.Generation, Deleting: !object.DeletionTimestamp.IsZero(),
		Spec: object.Spec, Status: object.Status, Workflow: workflow(contract.KindFDBBackup, object), wanted: wantedState(object),
		held: controllerutil.ContainsFinalizer(object, fdbv1alpha1.FinalizerStop),
	}
	described.Expirations = expirationsOf(described, object)
	if described.Workflow.Query == nil {
		return described
	}
	described.State = stateOf[contract.FDBBackupState](described, described.Workflow.ID)
	if described.State == nil {
		return described
	}
	memory := described.State.Memory
	if memory.Slot == contract.FDBSlotRequested || memory.Slot == contract.FDBSlotGranted {
		cluster, _, _ := strings.Cut(described.Workflow.ID, "/")
		described.FirstSnapshots = stateOf[contract.FDBThrottleState](described, contract.FDBThrottleID(cluster))
	}
	if memory.Owner != "" {
		described.Owner = stateOf[contract.FDBClusterState](described, contract.FDBClusterID(memory.Owner))
	}
	return described
}

// stateOf queries a workflow for its state. If it does not answer, Unknown says so, and the rest is shown. One that was never
// started has no state: nothing was due yet.
func stateOf[State any](d *describedFDBBackup, workflowID string) *State {
	state := new(State)
	var never *serviceerror.NotFound
	if err := d.Workflow.QueryAny(workflowID, state); errors.As(err, &never) {
		return nil
	} else if err != nil {
		d.Unknown = append(d.Unknown, fmt.Sprintf("state of %s: %v", workflowID, err))
		return nil
	}
	return state
}

func (d *describedFDBBackup) Print(out io.Writer) error {
	sheet := operator.NewSheet(out)
	sheet.Line("Namespace", d.Namespace)
	sheet.Line("Name", d.Name)
	d.printWanted(sheet)
	d.printFound(sheet)
	d.printExpiry(sheet)
	for _, entry := range d.Status.Backups {
		d.printBackup(sheet, entry)
	}
	d.printCoordination(sheet)
	sheet.Line("Not known", strings.Join(d.Unknown, "\n"))
	sheet.Workflow(d.Workflow)
	sheet.Conditions(d.Status.Conditions)
	return sheet.Flush()
}
