package fdb

import (
	"cmp"
	"fmt"
	"strings"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/k8s/fdb/restoretool"
	"holdfast.dev/holdfast/starter/operator"
	"holdfast.dev/holdfast/workflows/contract"
)

// printWanted shows the spec.
func (d *describedFDBRestore) printWanted(s operator.Sheet) {
	spec := d.Spec
	s.Line("FoundationDBCluster", spec.DestinationClusterName)
	s.Line("Wanted", d.wanted)
	s.Line("Backup", spec.BackupName)
	s.Line("Backup URL", spec.BackupURL)
	s.Line("Source cluster", spec.SourceClusterName)
	s.Line("To", restoreGoal(spec))
	printRanges(s, spec.KeyRanges)
	if spec.Credentials != nil {
		printCredentials(s, *spec.Credentials)
	}
}

func restoreGoal(spec fdbv1alpha1.FoundationDBRestoreSpec) string {
	switch {
	case spec.Version != 0:
		return fmt.Sprintf("version %d", spec.Version)
	case spec.Timestamp != nil:
		return operator.Moment(spec.Timestamp)
	}
	return "the latest that can be restored"
}

// printFound shows plan, state and progress.
func (d *describedFDBRestore) printFound(s operator.Sheet) {
	status := d.Status
	state := cmp.Or(string(status.State), "not observed yet")
	if d.Deleting {
		state += "; it is being deleted, and aborted first if it runs"
	}
	s.Line("State", state)
	if plan := status.Plan; plan != nil {
		s.Line("Planned", pointText(&fdbv1alpha1.RestorePoint{Version: plan.Version, Timestamp: plan.Timestamp}))
		s.Line("  from", plan.URL)
		s.Line("  into", plan.Destination)
		s.Line("  tag", plan.Tag)
	}
	if progress := status.Progress; progress != nil {
		s.Line("Progress", fmt.Sprintf("%d %%, %d bytes written", progress.PercentDone, progress.BytesWritten))
	}
	s.Line("Restored version", versionText(status.RestoredVersion))
	for _, task := range status.Finalization {
		s.Line("Task "+string(task.Name), strings.Join(append([]string{string(task.Phase)}, task.Errors...), "\n"))
	}
	if d.State == nil {
		return
	}
	d.printSeen(s, d.State.Seen)
}

// printSeen shows FoundationDB's last answers.
func (d *describedFDBRestore) printSeen(s operator.Sheet, seen contract.FDBRestoreInspection) {
	if seen.Failure != nil {
		s.Line("FoundationDB", fmt.Sprintf("%s: %s", seen.Failure.Class, seen.Failure.Message))
		return
	}
	if restore := seen.Restore; restore != nil {
		s.Line("In the database", fmt.Sprintf("%s, %d of %d blocks",
			restoretool.Observed(restore.State), restore.BlocksDone, restore.Blocks))
		s.Line("Last error", restore.LastError)
	}
	if seen.LockUID != "" {
		s.Line("Locked by", seen.LockUID)
	}
	if seen.AgentsPaused {
		s.Line("Agents", "all agents of the FoundationDB cluster are paused")
	}
	s.Line("Holds data in", seen.NotEmpty)
}

// printCoordination shows what this restore waits for, and the other members of the same queues.
func (d *describedFDBRestore) printCoordination(s operator.Sheet) {
	if d.State == nil {
		return
	}
	printOwner(s, d.State.Memory.Owner, d.Owner, false)
	if container := guarded(d.State); container != "" {
		s.Line("Guard of the data", contract.FDBContainerID(container))
	}
	if d.Guard != nil && d.Guard.Holder != nil {
		s.Line("  held by", d.Guard.Holder.Name)
	}
}
