package drill

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fdbrestore "holdfast.dev/holdfast/activities/fdb/restore"
	"holdfast.dev/holdfast/activities/verdict"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

func setVerified(drill *fdbv1alpha1.FoundationDBDrill, status metav1.ConditionStatus, reason, message string) {
	verdict.Set(&drill.Status.Conditions, drill.Generation, status, reason, message)
}

// refuse writes that the backup cannot be restored in this way now. The target was not touched.
func (o *Objects) refuse(why string) {
	now := metav1.NewTime(o.At)
	setVerified(o.Drill, metav1.ConditionUnknown, holdfastv1alpha1.ReasonNotVerified, why)
	o.Drill.Status.Concluded, o.Drill.Status.Phase = &now, fdbv1alpha1.FDBDrillCleaningUp
}

func (o *Objects) add(check string, result holdfastv1alpha1.DrillResult, format string, args ...any) {
	status := &o.Drill.Status
	verdict.Add(&status.Findings, &status.MoreFindings, check, result, fmt.Sprintf(format, args...))
}

// plan writes down what is restored. The records of an earlier version are those of the drill for which it was the present one.
func (o *Objects) plan(survey contract.FDBDrillSurvey, others []fdbv1alpha1.FoundationDBDrill) {
	status := &o.Drill.Status
	if status.Version != 0 || status.Concluded != nil {
		return // by an earlier attempt
	}
	entry := o.entry()
	switch {
	case survey.Refused != "":
		o.refuse(survey.Refused)
		return
	case entry == nil:
		o.refuse(fmt.Sprintf("nothing of FoundationDBBackup %q can be restored any more", o.Drill.Spec.BackupName))
		return
	case o.Drill.Spec.Version != 0:
		status.Version = o.Drill.Spec.Version
	case survey.Version != 0:
		status.Version = survey.Version
	default:
		status.Version = entry.LatestRestorable.Version
	}
	status.Phase = fdbv1alpha1.FDBDrillWaiting
	status.Method, status.NotCovered = fdbv1alpha1.DrillByDigests, "keys outside of the ranges of status.records are only counted"
	for _, record := range survey.Records {
		status.Records = append(status.Records, fdbv1alpha1.DrillRangeRecord{
			Name: record.Name, Start: record.Start, End: record.End, Keys: record.Keys, Bytes: record.Bytes, Digest: record.Digest,
		})
		if record.Digest == "" {
			o.add(fdbv1alpha1.CheckRanges, holdfastv1alpha1.DrillNotVerified, "range %s: %s", record.Name, record.Unread)
		}
	}
	if survey.Unread != "" {
		o.planByOthers(survey.Unread, others)
	}
}

// planByOthers takes the records that other drills of the backup have of the version.
func (o *Objects) planByOthers(unread string, others []fdbv1alpha1.FoundationDBDrill) {
	status, recorded := &o.Drill.Status, o.recorded(others)
	if len(recorded) == 0 {
		o.add(fdbv1alpha1.CheckRanges, holdfastv1alpha1.DrillNotVerified, "nothing is compared: %s", unread)
		return
	}
	status.Records = recorded
	for _, wanted := range o.ranges() {
		known := slices.ContainsFunc(recorded, func(r fdbv1alpha1.DrillRangeRecord) bool {
			return r.Start == wanted.Start && r.End == wanted.End
		})
		if !known {
			o.add(fdbv1alpha1.CheckRanges, holdfastv1alpha1.DrillNotVerified, "range %s: no drill has recorded it at version %d",
				wanted.Name, status.Version)
		}
	}
}

// recorded are the records that another drill of the backup has of the version, of the ranges of this drill.
func (o *Objects) recorded(others []fdbv1alpha1.FoundationDBDrill) []fdbv1alpha1.DrillRangeRecord {
	spec, status := &o.Drill.Spec, &o.Drill.Status
	var found []fdbv1alpha1.DrillRangeRecord
	for i := range others {
		other := &others[i]
		same := other.UID != o.Drill.UID && other.Spec.BackupName == spec.BackupName && other.Status.URL == status.URL &&
			other.Status.Version == status.Version
		if !same {
			continue
		}
		for _, r := range other.Status.Records {
			wanted := fdbv1alpha1.DrillKeyRange{Name: r.Name, Start: r.Start, End: r.End}
			known := slices.ContainsFunc(found, func(k fdbv1alpha1.DrillRangeRecord) bool { return k.Name == r.Name })
			if r.Digest != "" && !known && (len(spec.Ranges) == 0 || slices.Contains(spec.Ranges, wanted)) {
				found = append(found, r)
			}
		}
	}
	return found
}

// begin writes that the restore was made.
func (o *Objects) begin() {
	status := &o.Drill.Status
	if status.Begun != nil || !o.Ours() {
		return
	}
	begun := o.Restore.CreationTimestamp
	if begun.IsZero() {
		begun = metav1.NewTime(o.At)
	}
	status.Begun, status.Restore, status.Tag = &begun, o.Restore.Name, fdbrestore.Tag(o.Restore)
	if status.Concluded == nil {
		status.Phase = fdbv1alpha1.FDBDrillRestoring
	}
}

// mirror notes that the restore has completed.
func (o *Objects) mirror() {
	status := &o.Drill.Status
	if status.Restored != nil || status.Concluded != nil || !o.Ours() ||
		o.Restore.Status.State != fdbv1alpha1.RestoreCompleted {
		return
	}
	at := metav1.NewTime(o.At)
	if ready := meta.FindStatusCondition(o.Restore.Status.Conditions, fdbv1alpha1.ConditionReady); ready != nil {
		at = ready.LastTransitionTime
	}
	status.Restored, status.Phase = &at, fdbv1alpha1.FDBDrillChecking
	if status.Begun != nil {
		o.measured().RestoreSeconds = verdict.Seconds(at.Sub(status.Begun.Time))
	}
}

func (o *Objects) measured() *fdbv1alpha1.FoundationDBDrillMeasured {
	if o.Drill.Status.Measured == nil {
		o.Drill.Status.Measured = &fdbv1alpha1.FoundationDBDrillMeasured{}
	}
	return o.Drill.Status.Measured
}

// conclude writes the verdict.
func (o *Objects) conclude(check *contract.FDBDrillCheck) {
	status := &o.Drill.Status
	if status.Concluded != nil {
		return
	}
	o.mirror()
	verified, reason, message := o.verdict(check)
	setVerified(o.Drill, verified, reason, message)
	now := metav1.NewTime(o.At)
	status.Concluded, status.Phase = &now, fdbv1alpha1.FDBDrillCleaningUp
}

// verdict judges the drill by what became of the restore, and by what came back.
func (o *Objects) verdict(check *contract.FDBDrillCheck) (metav1.ConditionStatus, string, string) {
	status := &o.Drill.Status
	switch {
	case o.Restore != nil && !o.Ours():
		return metav1.ConditionUnknown, holdfastv1alpha1.ReasonNotVerified,
			fmt.Sprintf("FoundationDBRestore %q exists and was not made for this drill: delete it", o.Restore.Name)
	case status.Begun == nil && o.Restore == nil:
		return metav1.ConditionUnknown, holdfastv1alpha1.ReasonNotVerified,
			fmt.Sprintf("version %d could not be restored from the backup within %s", status.Version, timeout(o.Drill))
	case o.Restore == nil:
		return metav1.ConditionUnknown, holdfastv1alpha1.ReasonNotVerified,
			"the drill's FoundationDBRestore was deleted before it was over"
	case o.Restore.Status.State != fdbv1alpha1.RestoreCompleted:
		return o.verdictOfRestore()
	case check == nil || check.Unmade != "":
		why := "the target was not read"
		if check != nil {
			why = check.Unmade
		}
		o.add(fdbv1alpha1.CheckRanges, holdfastv1alpha1.DrillNotVerified, "%s", why)
		return metav1.ConditionUnknown, holdfastv1alpha1.ReasonNotVerified, "what came back could not be checked: " + why
	}
	return o.verdictOfChecks(o.compare(*check))
}

// aboutTarget are the reasons of conditions of a restore that say nothing about the backup.
var aboutTarget = []string{
	fdbv1alpha1.ReasonClusterMissing, fdbv1alpha1.ReasonClusterNotReady, fdbv1alpha1.ReasonToolsMissing,
	fdbv1alpha1.ReasonNotStarted, fdbv1alpha1.ReasonDatabaseNotEmpty, fdbv1alpha1.ReasonDatabaseLocked,
	fdbv1alpha1.ReasonAgentsPaused, fdbv1alpha1.ReasonNoAgents, fdbv1alpha1.ReasonDataBusy, fdbv1alpha1.ReasonDatabaseChanged,
	fdbv1alpha1.ReasonClusterUnreachable, fdbv1alpha1.ReasonNoWorker, fdbv1alpha1.ReasonStateUnknown,
}

// verdictOfRestore judges a restore that has not completed.
func (o *Objects) verdictOfRestore() (metav1.ConditionStatus, string, string) {
	why, reason, state := "", "", o.Restore.Status.State
	if unmet := fdbv1alpha1.Unmet(o.Restore.Status.Conditions); len(unmet) > 0 {
		why, reason = unmet[0].Message, unmet[0].Reason
	}
	if why == "" {
		why = "its restore was " + cmp.Or(string(state), "not begun") + " when the time was over"
	}
	message := fmt.Sprintf("the backup was not restored within %s: %s", timeout(o.Drill), why)
	switch {
	case state == fdbv1alpha1.RestoreAborted:
		return metav1.ConditionUnknown, holdfastv1alpha1.ReasonNotVerified, "the drill's restore was aborted: " + why
	case state == fdbv1alpha1.RestoreFailed:
		message = why
	case state == "" || reason == "" || slices.Contains(aboutTarget, reason):
		return metav1.ConditionUnknown, holdfastv1alpha1.ReasonNotVerified, message
	}
	o.add(fdbv1alpha1.CheckRestore, holdfastv1alpha1.DrillFailed, "%s", why)
	return metav1.ConditionFalse, holdfastv1alpha1.ReasonRestoreFailed, message
}

// compare writes what differs from the records, and counts the ranges that do not.
func (o *Objects) compare(check contract.FDBDrillCheck) (equal int64) {
	if check.Uncounted == "" {
		o.measured().Keys, o.measured().Bytes = check.Keys, check.Bytes
	} else {
		o.add(fdbv1alpha1.CheckCount, holdfastv1alpha1.DrillNotVerified, "the keys were not counted: %s", check.Uncounted)
	}
	for _, want := range o.Drill.Status.Records {
		at := slices.IndexFunc(check.Records, func(r contract.FDBRangeRecord) bool { return r.Name == want.Name })
		switch {
		case want.Digest == "": // a finding says so
		case at < 0 || check.Records[at].Digest == "":
			why := "it was not read"
			if at >= 0 {
				why = check.Records[at].Unread
			}
			o.add(fdbv1alpha1.CheckRanges, holdfastv1alpha1.DrillNotVerified, "range %s: %s", want.Name, why)
		case check.Records[at].Digest != want.Digest:
			got := check.Records[at]
			o.add(fdbv1alpha1.CheckRanges, holdfastv1alpha1.DrillFailed,
				"range %s: %s of %s came back, and the source held %s of %s at version %d; their digests differ", want.Name,
				verdict.Count(got.Keys, "key"), verdict.Count(got.Bytes, "byte"), verdict.Count(want.Keys, "key"),
				verdict.Count(want.Bytes, "byte"), o.Drill.Status.Version)
		default:
			equal++
		}
	}
	return equal
}

// verdictOfChecks judges a restore that has completed; so many ranges are equal to those of the source.
func (o *Objects) verdictOfChecks(equal int64) (metav1.ConditionStatus, string, string) {
	status := &o.Drill.Status
	failed, unverified := int64(0), status.MoreFindings
	for _, found := range status.Findings {
		if found.Result == holdfastv1alpha1.DrillFailed {
			failed++
		} else {
			unverified++
		}
	}
	if failed > 0 {
		return metav1.ConditionFalse, holdfastv1alpha1.ReasonChecksFailed, verdict.Count(failed, "finding") + ", see status.findings"
	}
	took := verdict.Count(o.measured().RestoreSeconds, "second")
	parts := []string{fmt.Sprintf("version %d was restored in %s", status.Version, took)}
	if equal > 0 {
		parts = append(parts, fmt.Sprintf("source and target have the same digests in %s", verdict.Count(equal, "range")))
	}
	if unverified > 0 {
		return metav1.ConditionTrue, holdfastv1alpha1.ReasonVerifiedInPart,
			strings.Join(append(parts, "status.findings says what was not verified"), "; ")
	}
	return metav1.ConditionTrue, holdfastv1alpha1.ReasonVerified, strings.Join(parts, "; ")
}

// end writes that nothing more is done.
func (o *Objects) end(cleared bool) {
	status, now := &o.Drill.Status, metav1.NewTime(o.At)
	if status.Ended != nil {
		return
	}
	status.Ended, status.Phase, status.Uncleared = &now, fdbv1alpha1.FDBDrillEnded, ""
	switch {
	case cleared:
		status.Cleared = &now
	case o.lost() != "":
		o.add(fdbv1alpha1.CheckCleanUp, holdfastv1alpha1.DrillFailed, "the target was not cleared: %s", o.lost())
	}
}
