package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/k8s/policy/planspec"
	"holdfast.dev/holdfast/workflows/plan"
	"holdfast.dev/holdfast/workflows/plan/retention"
)

// The functions of this file change the status of a BackupPlan in memory and nothing else.

// Bounds of the lists in a status.
const (
	maxRecent    = 5
	maxUnrecent  = 20 // with those that are not finished
	maxRetention = 20
	maxDays      = 31
)

// apply writes what the judgement comes to.
func apply(o *Objects, j Judgement, now time.Time) {
	p := o.Plan
	status := &p.Status
	status.UID, status.ObservedGeneration = p.UID, p.Generation
	status.Paused, status.Held = o.Paused, held(o, now)
	applyReady(o, j)
	applyObjective(p, j)
	if j.Passed.Make.IsZero() && j.Refused == "" {
		applyPassed(status, j.Passed, p)
	}
	status.NextRun = nil
	if j.Refused == "" && o.Paused == "" {
		status.NextRun = &metav1.Time{Time: j.Runs.Next(now)}
	}
	applyRecent(o)
	applyContent(o, j)
	status.LastGood = nil
	if b := j.LastGood; b != nil {
		status.LastGood = &holdfastv1alpha1.GoodRun{Name: b.Object.Name, Time: metav1.NewTime(b.begin())}
		if at := b.expires(); !at.IsZero() {
			status.LastGood.Expires = &metav1.Time{Time: at}
		}
	}
	status.LastVerified = j.LastVerified
	applyDrills(o, j, now)
	status.Counts.Stored = int64(o.stored())
	switch {
	case j.Refused == "":
		applyRetention(o, j, now)
	case status.Retention != nil: // nothing is deleted, and nothing waits for it
		status.Retention.OldestPending, status.Retention.PendingSince = "", nil
	}
}

// applyUnscheduled writes that Temporal does not hold the plan's Schedule yet.
func applyUnscheduled(p *holdfastv1alpha1.BackupPlan) {
	meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{
		Type: holdfastv1alpha1.ConditionReady, Status: metav1.ConditionUnknown, ObservedGeneration: p.Generation,
		Reason: holdfastv1alpha1.ReasonUnscheduled,
		Message: "the Schedule of this plan does not exist in Temporal yet, so no backup is due. Holdfast keeps retrying. If this " +
			"persists, an administrator should check Temporal and the plan's workflow",
	})
}

// applyPassed records the due times that were handled.
func applyPassed(status *holdfastv1alpha1.BackupPlanStatus, passed plan.Passed, p *holdfastv1alpha1.BackupPlan) {
	if passed.Handled.After(p.CreationTimestamp.Time) {
		status.HandledDue = &metav1.Time{Time: passed.Handled}
	}
	status.HandledSchedule = scheduleOf(p.Spec.Schedule, p.Spec.TimeZone)
	for _, at := range passed.Missed {
		countMissed(status, at)
	}
	if passed.Skipped {
		status.Counts.Skipped++
		dayOf(status, passed.Handled).Skipped++
	}
}

func applyReady(o *Objects, j Judgement) {
	if j.Refused != "" {
		setCondition(o.Plan, holdfastv1alpha1.ConditionReady, metav1.ConditionFalse, j.Reason, j.Refused)
		return
	}
	reason, message := holdfastv1alpha1.ReasonScheduled, "runs are made by the schedule"
	if keep := o.Keep; keep != nil {
		switch ttl, enforced := j.ttl(o); {
		case enforced:
			message += fmt.Sprintf("; the administrator enforces ttl %s, after which the backups of minGood expire, too", ttl)
			if rules := planspec.Counts(keep).Unkept(j.Gap, ttl); len(rules) > 0 {
				reason = holdfastv1alpha1.ReasonKeepExceedsTTL
				message = fmt.Sprintf("the administrator enforces ttl %s, which is too short for these rules of keep: %s",
					ttl, strings.Join(rules, ", "))
			}
		case ttl > cmp.Or(o.Plan.Spec.Template.Spec.BackupSpec.TTL.Duration, defaultTTL):
			message += fmt.Sprintf("; keep needs ttl %s, which each backup gets", ttl)
		}
	}
	if d := j.Drills; d.Refused != "" {
		reason, message = d.Reason, fmt.Sprintf("no drills are made: %s; %s", d.Refused, message)
	}
	setCondition(o.Plan, holdfastv1alpha1.ConditionReady, metav1.ConditionTrue, reason, message)
}

// applyRecent shows how the newest runs are, and counts those that have ended since they were last shown.
func applyRecent(o *Objects) {
	status := &o.Plan.Status
	for i := range status.Recent {
		run := &status.Recent[i]
		before := run.Phase
		run.Phase = holdfastv1alpha1.PhaseDeleted
		for _, b := range o.Backups {
			if b.Object.Name == run.Name {
				run.Phase = shownPhase(before, b.phase())
			}
		}
		if run.Phase != holdfastv1alpha1.PhaseDeleted && endOf(before) != endOf(run.Phase) {
			countEnd(status, run.Time.Time, endOf(before), -1) // what had backed off may complete
			countEnd(status, run.Time.Time, endOf(run.Phase), +1)
		}
	}
	kept := 0
	status.Recent = slices.DeleteFunc(status.Recent, func(run holdfastv1alpha1.Run) bool {
		kept++
		ended := endOf(run.Phase) != retention.Unfinished || run.Phase == holdfastv1alpha1.PhaseDeleted
		return (kept > maxRecent && ended) || kept > maxUnrecent
	})
	if status.LastRun != nil && len(status.Recent) > 0 && status.Recent[0].Name == status.LastRun.Name {
		status.LastRun.Phase = status.Recent[0].Phase
	}
}

// shownPhase is a run's phase, which was another before. While Velero deletes what has ended, that is how it has ended: Velero
// does not say it any more, and it counts.
func shownPhase(before, now string) string {
	if now == string(velerov1.BackupPhaseDeleting) && endOf(before) != retention.Unfinished {
		return before
	}
	return now
}

// countEnd counts a run that has ended, or counts it no more.
func countEnd(status *holdfastv1alpha1.BackupPlanStatus, due time.Time, end retention.State, by int64) {
	switch end {
	case retention.Good:
		status.Counts.Good += by
		dayOf(status, due).Good += by
	case retention.Failed:
		status.Counts.Failed += by
		dayOf(status, due).Failed += by
	case retention.Unfinished:
	}
}

// countMissed counts a due time without a run.
func countMissed(status *holdfastv1alpha1.BackupPlanStatus, at time.Time) {
	status.Counts.Missed++
	dayOf(status, at).Missed++
}

// dayOf is the entry of the day, of UTC, on which a run was due. One that is older than all that are kept is not kept either.
func dayOf(status *holdfastv1alpha1.BackupPlanStatus, due time.Time) *holdfastv1alpha1.Day {
	date := due.UTC().Format(time.DateOnly)
	newestFirst := func(day holdfastv1alpha1.Day, date string) int { return strings.Compare(date, day.Date) }
	at, known := slices.BinarySearchFunc(status.Days, date, newestFirst)
	if !known {
		if at >= maxDays {
			return &holdfastv1alpha1.Day{}
		}
		status.Days = slices.Insert(status.Days, at, holdfastv1alpha1.Day{Date: date})
		status.Days = status.Days[:min(len(status.Days), maxDays)]
	}
	return &status.Days[at]
}

// applyRun records a run that was made.
func applyRun(p *holdfastv1alpha1.BackupPlan, name string, at time.Time) {
	run := holdfastv1alpha1.Run{Name: name, Time: metav1.NewTime(at)}
	if slices.ContainsFunc(p.Status.Recent, func(r holdfastv1alpha1.Run) bool { return r.Name == name }) {
		return
	}
	p.Status.LastRun = &run
	p.Status.Recent = slices.Insert(p.Status.Recent, 0, run)
}

// applyRetention shows what becomes of each backup. The time changes only with that.
func applyRetention(o *Objects, j Judgement, now time.Time) {
	before := o.Plan.Status.Retention
	if o.Keep == nil {
		o.Plan.Status.Retention = nil
		return
	}
	blocked := append(o.undeletable(), j.Retention.Blocked...)
	pending := oldestPending(blocked, j.Retention.Due)
	for _, b := range o.Backups {
		if !b.Made && !b.deleting() && !b.gone() {
			blocked = append(blocked, retention.Named{Name: b.Object.Name, Why: "no record says that this plan has made it"})
		}
	}
	after := &holdfastv1alpha1.Retention{}
	kept, more := bounded(j.Retention.Kept)
	for _, each := range kept {
		after.Kept = append(after.Kept, holdfastv1alpha1.Kept{Name: each.Name, By: each.Why})
	}
	after.MoreKept = more
	after.Due, after.MoreDue = bounded(j.Retention.Due)
	after.Blocked, after.MoreBlocked = bounded(blocked)
	at := &metav1.Time{Time: now.Truncate(time.Second)}
	if before != nil {
		after.LastPass = before.LastPass
	}
	if o.Keep.DryRun {
		pending = "" // nothing is to be deleted
	}
	if after.OldestPending = pending; pending != "" {
		after.PendingSince = at
		if before != nil && before.OldestPending == pending {
			after.PendingSince = before.PendingSince
		}
	}
	if before == nil || !equality.Semantic.DeepEqual(before, after) {
		after.LastPass = at
	}
	o.Plan.Status.Retention = after
}

// oldestPending is the backup that retention is to delete first, now or once nothing blocks it; empty if there is none.
func oldestPending(blocked, due []retention.Named) string {
	if len(blocked) > 0 {
		return blocked[0].Name
	}
	if len(due) > 0 {
		return due[0].Name
	}
	return ""
}

func bounded(list []retention.Named) (shown []holdfastv1alpha1.BackupReason, more int64) {
	if excess := len(list) - maxRetention; excess > 0 {
		list, more = list[:maxRetention], int64(excess)
	}
	for _, named := range list {
		shown = append(shown, holdfastv1alpha1.BackupReason{Name: named.Name, Why: named.Why})
	}
	return shown, more
}

func setCondition(p *holdfastv1alpha1.BackupPlan, kind string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, ObservedGeneration: p.Generation, Reason: reason, Message: message,
	})
}
