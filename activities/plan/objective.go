package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/workflows/plan"
	"holdfast.dev/holdfast/workflows/plan/retention"
)

// Verified is what a drill has verified of a backup; nil if none has, or a newer one has failed. Who deletes a backup does not
// undo that it could be restored.
func Verified(nab *oadpv1alpha1.NonAdminBackup) *holdfastv1alpha1.VerifiedRun {
	status := &nab.Status
	made, drill := status.VeleroBackup, status.NewestDrill()
	if !meta.IsStatusConditionTrue(status.Conditions, holdfastv1alpha1.ConditionVerified) || drill == nil ||
		made == nil || made.Status == nil || made.Status.CompletionTimestamp == nil {
		return nil
	}
	return &holdfastv1alpha1.VerifiedRun{
		Name: nab.Name, Time: *made.Status.CompletionTimestamp, Verified: drill.Concluded,
		RestoreSeconds: drill.RestoreSeconds, ReadySeconds: drill.ReadySeconds,
	}
}

// lastVerified is the newest good backup that a drill has verified, whether it still exists or not; nil if there is none.
func (o *Objects) lastVerified() *holdfastv1alpha1.VerifiedRun {
	newest := o.Plan.Status.LastVerified
	if newest != nil && slices.ContainsFunc(o.Backups, func(b Backup) bool { return b.Object.Name == newest.Name && b.refuted() }) {
		newest = nil
	}
	for _, b := range o.made() {
		if v := Verified(b.Object); v != nil && b.state() == retention.Good && Later(v, newest) {
			newest = v
		}
	}
	return newest
}

// Later reports whether a verified backup is newer than another one, which may be nil, or was verified again.
func Later(v, than *holdfastv1alpha1.VerifiedRun) bool {
	if than == nil {
		return true
	}
	if order := v.Time.Compare(than.Time.Time); order != 0 {
		return order > 0
	}
	return v.Verified.After(than.Verified.Time)
}

// refuted: the newest drill of the backup has failed.
func (b Backup) refuted() bool {
	return meta.IsStatusConditionFalse(b.Object.Status.Conditions, holdfastv1alpha1.ConditionVerified)
}

func (j *Judgement) judgeObjective(o *Objects, now time.Time) {
	wanted := o.Plan.Spec.Objective
	if wanted == nil {
		return
	}
	objective := plan.Objective{
		RecoveryPoint: duration(wanted.RecoveryPoint), Verified: duration(wanted.Verified),
		Created: o.Plan.CreationTimestamp.Time, Drilled: drilledSince(o.Plan, now), Paused: o.Paused != "",
	}
	if j.LastGood != nil {
		objective.LastGood = j.LastGood.begin()
	}
	if j.LastVerified != nil {
		objective.LastVerified = j.LastVerified.Time.Time
	}
	j.Objective = objective.JudgeAll(now)
	j.wakeBy(j.Objective.Changes)
}

// drilledSince is since when backups of the plan can have been verified.
func drilledSince(p *holdfastv1alpha1.BackupPlan, now time.Time) time.Time {
	switch drills := p.Status.Drills; {
	case p.Spec.Drill == nil:
		return p.CreationTimestamp.Time
	case drills == nil || drills.Since == nil:
		return now
	default:
		return drills.Since.Time
	}
}

// Misses reports whether a plan's newest good backup is too old, or, if only that is, its newest verified one.
func Misses(status *holdfastv1alpha1.BackupPlanStatus) (recovery, verification bool) {
	met := meta.FindStatusCondition(status.Conditions, holdfastv1alpha1.ConditionObjectiveMet)
	if met == nil || met.Status != metav1.ConditionFalse {
		return false, false
	}
	verification = met.Reason == holdfastv1alpha1.ReasonVerificationStale || met.Reason == holdfastv1alpha1.ReasonNeverVerified
	return !verification, verification
}

func (j *Judgement) wakeBy(at time.Time) {
	if !at.IsZero() && (j.Wake.IsZero() || at.Before(j.Wake)) {
		j.Wake = at
	}
}

func applyObjective(p *holdfastv1alpha1.BackupPlan, j Judgement) {
	if p.Spec.Objective == nil {
		meta.RemoveStatusCondition(&p.Status.Conditions, holdfastv1alpha1.ConditionObjectiveMet)
		return
	}
	reason := j.Objective.Worst()
	status := metav1.ConditionFalse
	switch reason {
	case plan.Met:
		status = metav1.ConditionTrue
	case plan.Unknown, plan.Paused:
		status = metav1.ConditionUnknown
	}
	var texts []string
	if j.Objective.Recovery != "" {
		texts = append(texts, recoveryText(p.Spec.Objective.RecoveryPoint, j))
	}
	if j.Objective.Verification != "" {
		texts = append(texts, verificationText(p.Spec.Objective.Verified, j))
	}
	setCondition(p, holdfastv1alpha1.ConditionObjectiveMet, status, string(reason), strings.Join(texts, "; "))
}

// recoveryText says how old the newest good backup is, compared with the objective.
func recoveryText(point string, j Judgement) string {
	switch j.Objective.Recovery {
	case plan.Met:
		return "the newest good backup is younger than " + point
	case plan.Stale:
		return fmt.Sprintf("the newest good backup began at %s, more than %s ago", j.LastGood.begin().UTC().Format(time.RFC3339), point)
	case plan.NeverSucceeded:
		return "there is no good backup, and the plan is older than " + point
	case plan.Unknown:
		return "there is no good backup yet, and the plan is younger than " + point
	}
	return "the plan is paused, and its newest good backup is absent or older than " + point
}

// verificationText says the same of the newest verified backup.
func verificationText(most string, j Judgement) string {
	switch j.Objective.Verification {
	case plan.Met:
		return "the newest verified backup is younger than " + most
	case plan.VerificationStale:
		return fmt.Sprintf("the newest verified backup was complete at %s, more than %s ago",
			j.LastVerified.Time.UTC().Format(time.RFC3339), most)
	case plan.NeverVerified:
		return "no drill has verified a backup, and the plan has had drills for more than " + most
	case plan.Unknown:
		return "no drill has verified a backup yet, and the plan has had drills for less than " + most
	}
	return "the plan is paused, and its newest verified backup is absent or older than " + most
}
