package plan

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/drill/gather"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/k8s/policy/planspec"
	"holdfast.dev/holdfast/k8s/shorten"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/plan"
	"holdfast.dev/holdfast/workflows/plan/due"
)

// Drills is what the drills of a plan come to at one moment.
type Drills struct {
	Runs   plan.Runs
	Passed plan.Passed
	// Refused says why the plan makes no drills, although it makes runs, and Reason is that of condition Ready; empty if it does.
	Refused, Reason string
	// Blocked says why a drill that is due would be skipped; empty if it would not.
	Blocked string
	// Excess is the drill that is to be deleted next, by name; empty if there is none.
	Excess string
}

// keptDrills is how many of its newest ended drills a plan keeps, beside the newest that has verified a backup.
const keptDrills = 3

// drills lists the drills that say that the plan has made them. A tenant can write that too, of drills of its own.
func (g *Gatherer) drills(ctx context.Context, p *holdfastv1alpha1.BackupPlan) ([]holdfastv1alpha1.RestoreDrill, error) {
	if p.Spec.Drill == nil {
		return nil, nil
	}
	list := &holdfastv1alpha1.RestoreDrillList{}
	err := g.Reader.List(ctx, list, client.InNamespace(p.Namespace), client.MatchingLabels{holdfastv1alpha1.LabelPlan: p.Name})
	if err != nil {
		return nil, fmt.Errorf("list RestoreDrills of plan %s/%s: %w", p.Namespace, p.Name, err)
	}
	drills := slices.DeleteFunc(list.Items, func(drill holdfastv1alpha1.RestoreDrill) bool {
		return drill.Annotations[holdfastv1alpha1.AnnotationPlanUID] != string(p.UID)
	})
	slices.SortFunc(drills, func(a, b holdfastv1alpha1.RestoreDrill) int { // newest first
		return cmp.Or(dueAt(&b).Compare(dueAt(&a)), strings.Compare(b.Name, a.Name))
	})
	return drills, nil
}

// judgeDrills judges which drill is due, and which goes. A plan makes one at a time.
func (j *Judgement) judgeDrills(o *Objects, now time.Time) {
	spec := o.Plan.Spec.Drill
	if spec == nil || j.Refused != "" {
		return
	}
	d := &j.Drills
	d.Excess = excessDrill(o.Drills)
	schedule := d.admit(o, now)
	if d.Refused != "" {
		return
	}
	d.Blocked = drillBlocked(o.Drills, j.LastGood)
	handled, since := drillsHandled(o.Plan, now)
	d.Runs = plan.Runs{
		Schedule: schedule, Jitter: jitterOf(o.Plan, schedule, now), Deadline: deadlineOf(&o.Plan.Spec),
		Handled: handled, Since: since, Paused: o.Paused != "", Busy: d.Blocked != "",
		Made: func(at time.Time) bool {
			name := contract.PlanRunName(o.Plan.Name, at)
			return slices.ContainsFunc(o.Drills, func(drill holdfastv1alpha1.RestoreDrill) bool { return drill.Name == name })
		},
	}
	d.Passed = d.Runs.Judge(now)
	if o.Paused == "" {
		j.wakeBy(d.Runs.Next(now))
	}
}

// admit reads the schedule of the drills, and judges what the plan says of them. What is wrong with it must not stop the backups.
func (d *Drills) admit(o *Objects, now time.Time) due.Schedule {
	spec := &o.Plan.Spec
	schedule, err := due.Parse(spec.Drill.Schedule, spec.TimeZone)
	if job := spec.Drill.Checks.Job; err == nil && job != nil {
		if _, unfit := gather.JobTemplate(job); unfit != nil {
			err = fmt.Errorf("checks.job.template cannot be used: %w", unfit)
		}
	}
	if err != nil {
		d.Refused, d.Reason = shorten.Text("drill: "+err.Error(), maxRefused), holdfastv1alpha1.ReasonDrillInvalid
		return schedule
	}
	if d.Refused = planspec.ForbiddenDrills(o.Plan.Name, spec, o.Rules.Own, schedule.Period(now)); d.Refused != "" {
		d.Reason = holdfastv1alpha1.ReasonDrillForbidden
	}
	return schedule
}

// drillBlocked says why no drill can begin now.
func drillBlocked(drills []holdfastv1alpha1.RestoreDrill, good *Backup) string {
	for i := range drills {
		if drills[i].Status.Phase != holdfastv1alpha1.DrillEnded {
			return "the last drill is not over: RestoreDrill " + drills[i].Name
		}
	}
	if good == nil {
		return "the plan has no good backup"
	}
	return ""
}

// drillsHandled is until when due times of drills are handled, and since when others count, as handledOf for runs. Drills that a
// plan has only now are due from now on.
func drillsHandled(p *holdfastv1alpha1.BackupPlan, now time.Time) (handled, since time.Time) {
	known := p.Status.Drills
	ready := meta.FindStatusCondition(p.Status.Conditions, holdfastv1alpha1.ConditionReady)
	switch {
	case known == nil, known.HandledDue == nil, known.HandledSchedule != scheduleOf(p.Spec.Drill.Schedule, p.Spec.TimeZone),
		known.HandledDue.After(now.Add(skewMost)):
		return now, now
	case ready != nil && (ready.Status == metav1.ConditionFalse || refusesDrills(ready.Reason)):
		return known.HandledDue.Time, now.Add(-deadlineOf(&p.Spec))
	}
	return known.HandledDue.Time, now.Add(-missedFor)
}

// refusesDrills: a reason of condition Ready with which a plan makes runs and no drills.
func refusesDrills(reason string) bool {
	return reason == holdfastv1alpha1.ReasonDrillInvalid || reason == holdfastv1alpha1.ReasonDrillForbidden
}

// excessDrill is the oldest drill that is over and neither among the newest nor the last that has verified a backup.
func excessDrill(newestFirst []holdfastv1alpha1.RestoreDrill) string {
	excess, ended, verified := "", 0, false
	for i := range newestFirst {
		drill := &newestFirst[i]
		if drill.Status.Phase != holdfastv1alpha1.DrillEnded || !drill.DeletionTimestamp.IsZero() {
			continue
		}
		ended++
		good := meta.IsStatusConditionTrue(drill.Status.Conditions, holdfastv1alpha1.ConditionVerified)
		if ended > keptDrills && (verified || !good) {
			excess = drill.Name
		}
		verified = verified || good
	}
	return excess
}
