package fdb

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/starter/operator"
	"holdfast.dev/holdfast/starter/terminal"
	"holdfast.dev/holdfast/workflows/contract"
)

// Restores is how FoundationDBRestores are listed and described.
var Restores = operator.Show[fdbv1alpha1.FoundationDBRestoreList](
	contract.KindFDBRestore, "fdbrestore", fdbRestoreColumns, fdbRestoreRow, describeFDBRestore,
)

// listedFDBRestore is one row of `holdfast list fdbrestores`. Its phase is status.state, as the column STATE.
type listedFDBRestore struct {
	operator.Listed
	Wanted  string `json:"wanted"`
	State   string `json:"state,omitempty"`
	Percent *int32 `json:"percent,omitempty"`
	// Version is the version that was restored, or is going to be.
	Version int64 `json:"version,omitempty"`
	// Reasons are those of the conditions: why it has not been restored.
	Reasons []string `json:"reasons,omitempty"`
}

var fdbRestoreColumns = operator.ColumnsOf(func(r listedFDBRestore) operator.Listed { return r.Listed },
	operator.NewColumn("WANTED", func(r listedFDBRestore) string { return r.Wanted }),
	operator.NewColumn("STATE", func(r listedFDBRestore) string { return r.State }),
	operator.NewColumn("PERCENT", func(r listedFDBRestore) string { return operator.Number(r.Percent) }),
	operator.NewColumn("VERSION", func(r listedFDBRestore) string { return versionText(r.Version) }),
	operator.NewColumn("REASONS", func(r listedFDBRestore) string { return strings.Join(r.Reasons, ",") }),
)

func fdbRestoreRow(object *fdbv1alpha1.FoundationDBRestore, of operator.Listed) listedFDBRestore {
	status := object.Status
	row := listedFDBRestore{
		Listed: of, Wanted: wantedRestore(object), State: terminal.Printable(string(status.State)), Version: status.RestoredVersion,
	}
	row.Phase = row.State
	if !object.DeletionTimestamp.IsZero() {
		row.Phase = "Deleting"
	}
	if status.Progress != nil {
		row.Percent = &status.Progress.PercentDone
	}
	if status.Plan != nil && row.Version == 0 {
		row.Version = status.Plan.Version
	}
	for _, condition := range fdbv1alpha1.Unmet(status.Conditions) {
		row.Reasons = append(row.Reasons, terminal.Printable(condition.Reason))
	}
	return row
}

// wantedRestore returns spec.restoreState with its default.
func wantedRestore(object *fdbv1alpha1.FoundationDBRestore) string {
	return string(cmp.Or(object.Spec.RestoreState, fdbv1alpha1.RestoreStateRunning))
}

func versionText(version int64) string {
	if version == 0 {
		return ""
	}
	return strconv.FormatInt(version, 10)
}

// describedFDBRestore is what `holdfast describe fdbrestore` shows.
type describedFDBRestore struct {
	Namespace  string                                `json:"namespace"`
	Name       string                                `json:"name"`
	Generation int64                                 `json:"generation"`
	Deleting   bool                                  `json:"deleting,omitempty"`
	Spec       fdbv1alpha1.FoundationDBRestoreSpec   `json:"spec"`
	Status     fdbv1alpha1.FoundationDBRestoreStatus `json:"status"`
	// State is the workflow's: its last findings. Nil if it does not run, or no worker answers.
	State *contract.FDBRestoreState `json:"state,omitempty"`
	// Owner is the state of the workflow that owns the destination, Guard that of the one that guards the backup's data.
	Owner *contract.FDBClusterState   `json:"owner,omitempty"`
	Guard *contract.FDBContainerState `json:"guard,omitempty"`
	// Unknown lists what could not be queried.
	Unknown  []string                   `json:"unknown,omitempty"`
	Workflow operator.DescribedWorkflow `json:"workflow"`

	wanted string
}

func describeFDBRestore(object *fdbv1alpha1.FoundationDBRestore, workflow operator.WorkflowDescriber) operator.Description {
	described := &describedFDBRestore{
		Namespace: object.Namespace, Name: object.Name, Generation: object.Generation, Deleting: !object.DeletionTimestamp.IsZero(),
		Spec: object.Spec, Status: object.Status, Workflow: workflow(contract.KindFDBRestore, object), wanted: wantedRestore(object),
	}
	if described.Workflow.Query == nil {
		return described
	}
	query := func(id string, state any) bool { // without an answer the rest is shown
		err := described.Workflow.Query(id, state)
		if err != nil {
			described.Unknown = append(described.Unknown, fmt.Sprintf("state of %s: %v", id, err))
		}
		return err == nil
	}
	state := &contract.FDBRestoreState{}
	if !query(described.Workflow.ID, state) {
		return described
	}
	described.State = state
	if owner := (&contract.FDBClusterState{}); state.Memory.Owner != "" && query(contract.FDBClusterID(state.Memory.Owner), owner) {
		described.Owner = owner
	}
	if guard, container := (&contract.FDBContainerState{}), guarded(state); container != "" &&
		query(contract.FDBContainerID(container), guard) {
		described.Guard = guard
	}
	return described
}

// guarded returns the container whose guard the restore uses: its guard is queried only if something has to be started or read.
func guarded(state *contract.FDBRestoreState) string {
	if state.Memory.Reading != "" || state.View.Plan == nil {
		return state.Memory.Reading
	}
	return state.View.Plan.Container
}

func (d *describedFDBRestore) Print(out io.Writer) error {
	sheet := operator.NewSheet(out)
	sheet.Line("Namespace", d.Namespace)
	sheet.Line("Name", d.Name)
	d.printWanted(sheet)
	d.printFound(sheet)
	d.printCoordination(sheet)
	sheet.Line("Not known", strings.Join(d.Unknown, "\n"))
	sheet.Workflow(d.Workflow)
	sheet.Conditions(d.Status.Conditions)
	return sheet.Flush()
}
