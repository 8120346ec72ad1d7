package plan

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/activities/verdict"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/metrics"
)

// Kubernetes Events on a BackupPlan, best effort: written once, after the change that they report.
const (
	eventRun       = "BackupCreated"
	eventRefused   = "RunRefused"
	eventMissed    = "RunsMissed"
	eventSkipped   = "RunSkipped"
	eventPaused    = "Paused"
	eventResumed   = "Resumed"
	eventDeletion  = "BackupDeleted"
	eventExtension = "BackupExtended"

	eventDrill        = "DrillCreated"
	eventDrillRefused = "DrillRefused"
	eventDrillSkipped = "DrillSkipped"
	eventDrillsMissed = "DrillsMissed"
)

// recordChanges writes Events about what a new status says.
func (a *Activities) recordChanges(p *holdfastv1alpha1.BackupPlan, before *holdfastv1alpha1.BackupPlanStatus) {
	after := &p.Status
	metrics.PlanRuns(metrics.RunGood, after.Counts.Good-before.Counts.Good)
	metrics.PlanRuns(metrics.RunFailed, after.Counts.Failed-before.Counts.Failed)
	metrics.PlanRuns(metrics.RunMissed, after.Counts.Missed-before.Counts.Missed)
	metrics.PlanRuns(metrics.RunSkipped, after.Counts.Skipped-before.Counts.Skipped)
	if missed := after.Counts.Missed - before.Counts.Missed; missed > 0 {
		a.Record(p, corev1.EventTypeWarning, eventMissed, "Schedule", "%s due and not made within %s", were(missed, "run"),
			p.Spec.StartingDeadline)
	}
	if after.Counts.Skipped > before.Counts.Skipped {
		a.Record(p, corev1.EventTypeWarning, eventSkipped, "Schedule", "a run was due while the last backup was not finished")
	}
	a.recordDrills(p, before.Drills)
	switch after.Paused {
	case before.Paused:
	case "":
		a.Record(p, corev1.EventTypeNormal, eventResumed, "Schedule", "the plan is no longer paused")
	default:
		a.Record(p, corev1.EventTypeNormal, eventPaused, "Schedule", "paused by %s", after.Paused)
	}
	for _, kind := range shownConditions {
		was, is := meta.FindStatusCondition(before.Conditions, kind), meta.FindStatusCondition(after.Conditions, kind)
		if !news(was, is) {
			continue
		}
		severity := corev1.EventTypeWarning
		if is.Status == metav1.ConditionTrue && !refusesDrills(is.Reason) {
			severity = corev1.EventTypeNormal
		}
		a.Record(p, severity, is.Reason, "Judge", "%s", is.Message)
	}
}

func (a *Activities) recordRun(s *subject, nab *oadpv1alpha1.NonAdminBackup, refusal string) {
	how := "as scheduled"
	if s.step.Due != 0 {
		how = "as requested"
	}
	if nab == nil {
		a.Record(s.Plan, corev1.EventTypeWarning, eventRefused, "Run", "no backup was made %s: %s", how, refusal)
		return
	}
	metrics.PlanRuns(metrics.RunMade, 1)
	a.Record(s.Plan, corev1.EventTypeNormal, eventRun, "Run", "created NonAdminBackup %s, %s", nab.Name, how)
}

func (a *Activities) recordDeletion(p *holdfastv1alpha1.BackupPlan, name, why string) {
	a.Record(p, corev1.EventTypeNormal, eventDeletion, "Retain", "requested the deletion of NonAdminBackup %s: %s", name, why)
}

func (a *Activities) recordExtension(p *holdfastv1alpha1.BackupPlan, name string, until time.Time) {
	a.Record(p, corev1.EventTypeNormal, eventExtension, "Retain", "minGood keeps NonAdminBackup %s: it expires at %s now", name,
		until.UTC().Format(time.RFC3339))
}

// recordDrills writes Events about drills that were not made.
func (a *Activities) recordDrills(p *holdfastv1alpha1.BackupPlan, before *holdfastv1alpha1.PlanDrills) {
	after := p.Status.Drills
	if after == nil {
		return
	}
	if before == nil {
		before = &holdfastv1alpha1.PlanDrills{}
	}
	if missed := after.Missed - before.Missed; missed > 0 {
		a.Record(p, corev1.EventTypeWarning, eventDrillsMissed, "Drill", "%s due and not made within %s", were(missed, "drill"),
			p.Spec.StartingDeadline)
	}
	if after.Skipped > before.Skipped && after.LastSkipped != nil {
		a.Record(p, corev1.EventTypeWarning, eventDrillSkipped, "Drill", "a drill was due and not made: %s", after.LastSkipped.Why)
	}
}

func (a *Activities) recordDrill(p *holdfastv1alpha1.BackupPlan, drill *holdfastv1alpha1.RestoreDrill, refusal string) {
	if drill == nil {
		a.Record(p, corev1.EventTypeWarning, eventDrillRefused, "Drill", "no drill was made: %s", refusal)
		return
	}
	a.Record(p, corev1.EventTypeNormal, eventDrill, "Drill", "created RestoreDrill %s of NonAdminBackup %s", drill.Name,
		drill.Spec.BackupName)
}

func were(number int64, what string) string {
	if number == 1 {
		return "a " + what + " was"
	}
	return verdict.Count(number, what) + " were"
}
