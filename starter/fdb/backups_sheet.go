package fdb

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/starter/operator"
	"holdfast.dev/holdfast/workflows/contract"
)

// printWanted shows the spec.
func (d *describedFDBBackup) printWanted(s operator.Sheet) {
	spec := d.Spec
	s.Line("FoundationDBCluster", cmp.Or(spec.ClusterName, d.Name))
	s.Line("Wanted", d.wanted)
	s.Line("Tag", spec.Tag)
	if d.State != nil {
		s.Line("Destination", d.State.View.Desired.URL)
	}
	printRanges(s, spec.KeyRanges)
	if spec.SnapshotPeriodSeconds > 0 {
		s.Line("Snapshot period", (time.Duration(spec.SnapshotPeriodSeconds) * time.Second).String())
	}
	printCredentials(s, spec.Credentials)
}

func printRanges(s operator.Sheet, ranges []fdbv1alpha1.KeyRange) {
	var lines []string
	for _, keys := range ranges {
		lines = append(lines, keys.Start+" "+keys.End)
	}
	s.Line("Key ranges", strings.Join(lines, "\n"))
}

func printCredentials(s operator.Sheet, of fdbv1alpha1.CredentialsReference) {
	s.Line("Credentials", fmt.Sprintf("Secret %s, key %s", of.SecretName, cmp.Or(of.Key, "credentials")))
}

// printFound shows the status.
func (d *describedFDBBackup) printFound(s operator.Sheet) {
	switch {
	case d.Deleting && !d.held:
		s.Line("Reconciled", "no: it is being deleted; its backup has ended, and its data are deleted in their turn")
	case d.Deleting:
		s.Line("Reconciled", "no: it is being deleted, and its backup stopped first")
	case d.Status.ObservedGeneration != d.Generation:
		s.Line("Reconciled", fmt.Sprintf("no: the status is of generation %d, the spec is of %d",
			d.Status.ObservedGeneration, d.Generation))
	case d.Status.Reconciled:
		s.Line("Reconciled", "yes")
	default:
		s.Line("Reconciled", "no: see the conditions")
	}
	if d.State == nil {
		return
	}
	seen := d.State.Seen
	if seen.Failure != nil {
		s.Line("FoundationDB", fmt.Sprintf("%s: %s", seen.Failure.Class, seen.Failure.Message))
	}
	for _, tag := range seen.Tags {
		s.Line("On tag "+tag.Tag, tagText(tag))
	}
	if agents := d.State.View.Agents; agents.Exists {
		s.Line("Agents", fmt.Sprintf("%d of %d ready%s", agents.Ready, agents.Wanted, agentsText(agents, seen.AgentsPaused)))
	}
}

func tagText(tag contract.FDBTag) string {
	text := cmp.Or(tag.State, "never used")
	if tag.Running && !tag.Restorable {
		text += fmt.Sprintf(", not restorable yet, %d bytes of the first snapshot written", tag.RangeBytes)
	}
	if len(tag.Errors) > 0 {
		text += "\n" + strings.Join(tag.Errors, "\n")
	}
	return text
}

func agentsText(agents contract.FDBAgentsView, paused bool) string {
	text := ""
	switch {
	case !agents.Ours:
		text += "; the Deployment is not this backup's"
	case !agents.Current:
		text += "; the Deployment differs from the spec"
	}
	if paused {
		text += "; all agents of the FoundationDB cluster are paused"
	}
	return text
}

func (d *describedFDBBackup) printBackup(s operator.Sheet, entry fdbv1alpha1.BackupDetails) {
	s.Line("Backup", entry.URL)
	s.Line("  state", fmt.Sprintf("%s, tag %s", cmp.Or(entry.State, "unknown"), entry.Tag))
	s.Line("  key ranges", strings.Join(entry.KeyRanges, "\n"))
	if entry.OldestData == nil || entry.LatestRestorable == nil {
		s.Line("  restorable", "no")
		return
	}
	s.Line("  restorable from", pointText(entry.OldestData))
	until := pointText(entry.LatestRestorable)
	if at := pointTime(entry.LatestRestorable); at != nil && strings.HasPrefix(entry.State, "Running") {
		lag := lagOf(*at)
		until += ", " + lagText(&lag) + " ago"
	}
	s.Line("  restorable to", until)
}

func pointText(point *fdbv1alpha1.RestorePoint) string {
	if at := pointTime(point); at != nil {
		return fmt.Sprintf("%s (version %d)", operator.Moment(at), point.Version)
	}
	return fmt.Sprintf("version %d", point.Version)
}

// printCoordination shows what this backup waits for, and the other members of the same queues.
func (d *describedFDBBackup) printCoordination(s operator.Sheet) {
	if d.State == nil {
		return
	}
	memory := d.State.Memory
	switch memory.Slot {
	case contract.FDBSlotGranted:
		s.Line("First snapshot", "has a slot")
	case contract.FDBSlotRequested:
		s.Line("First snapshot", "waits for a slot")
	}
	if memory.Stalled {
		s.Line("", "has made no progress for --fdb-initial-snapshot-timeout and has given its slot back")
	}
	if d.FirstSnapshots != nil {
		s.Line("Slots", fmt.Sprintf("%d of %d in use", len(d.FirstSnapshots.Holders), d.FirstSnapshots.Limit))
		holders(s, "  held by", d.FirstSnapshots.Holders)
		holders(s, "  waiting", d.FirstSnapshots.Waiting)
		if beyond := d.FirstSnapshots.Beyond; beyond > 0 {
			s.Line("", fmt.Sprintf("and about %d more", beyond))
		}
	}
	if len(memory.Opposed) > 0 {
		s.Line("Objections", strings.Join(memory.Opposed, "\n"))
	}
	printOwner(s, memory.Owner, d.Owner, true)
}

// printOwner shows the workflow that owns a FoundationDB cluster: what it runs, and who wants the agents paused, or, with all,
// running. state is nil if it did not answer.
func printOwner(s operator.Sheet, owner string, state *contract.FDBClusterState, all bool) {
	if owner == "" {
		return
	}
	s.Line("Owner of the cluster", contract.FDBClusterID(owner))
	if state == nil {
		return
	}
	if state.Running != nil {
		s.Line("  runs", fmt.Sprintf("%s for %s", state.Running.Operation, state.Requester))
	}
	if state.Waiting > 0 {
		s.Line("  waiting", fmt.Sprintf("%d more commands", state.Waiting))
	}
	if all {
		s.Line("  wants running", strings.Join(members(state.Members, false), "\n"))
	}
	s.Line("  wants paused", strings.Join(members(state.Members, true), "\n"))
}

func holders(s operator.Sheet, name string, holders []contract.FDBHolder) {
	var lines []string
	for _, holder := range holders {
		text := fmt.Sprintf("%s since %s", holder.WorkflowID, time.Unix(holder.Since, 0).UTC().Format(time.RFC3339))
		if holder.ClosedSince != 0 {
			text += ", its workflow does not run"
		}
		lines = append(lines, text)
	}
	s.Line(name, strings.Join(lines, "\n"))
}

// members returns the names of those that want the agents paused, or running.
func members(all []contract.FDBMember, paused bool) []string {
	var names []string
	for member := range slices.Values(all) {
		if member.Paused == paused {
			names = append(names, member.Name)
		}
	}
	return names
}
