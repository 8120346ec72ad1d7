package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/k8s/policy/planspec"
	"holdfast.dev/holdfast/k8s/shorten"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/plan"
	"holdfast.dev/holdfast/workflows/plan/due"
	"holdfast.dev/holdfast/workflows/plan/retention"
)

// defaultTTL is Velero's, of a Backup that names none; an administrator may have set another (--default-backup-ttl).
const defaultTTL = 720 * time.Hour

// Judgement is what the objects of a plan come to at one moment. It is computed from them alone.
type Judgement struct {
	// Refused says why the spec is not carried out, Reason is that of condition Ready; empty if it is.
	Refused, Reason string
	Runs            plan.Runs
	Passed          plan.Passed
	// Gap is the longest time between two due times.
	Gap       time.Duration
	Retention retention.Verdict
	// Content is what the good backups hold; nil as long as there is none.
	Content *holdfastv1alpha1.Content
	// LastGood is the newest good backup; nil if there is none.
	LastGood *Backup
	// LastVerified is the newest verified backup; nil if there is none.
	LastVerified *holdfastv1alpha1.VerifiedRun
	// Objective is empty without one.
	Objective plan.Judged
	// Drills are zero without drills.
	Drills Drills
	// Wake is when something is due without an event.
	Wake time.Time
}

// Judge judges a plan. used are the backups that something reads, by name.
func Judge(o *Objects, used map[string]string, now time.Time) Judgement {
	var j Judgement
	schedule := j.admit(o, now)
	j.LastGood, j.Content = o.lastGood(), o.judgeContent()
	j.LastVerified = o.lastVerified()
	if j.Refused == "" {
		j.Gap = longestGap(schedule, now)
		j.Runs = o.runs(schedule, now)
		j.Passed = j.Runs.Judge(now)
		j.Wake = j.Runs.Next(now).Add(wakeGrace)
		j.retain(o, used, now)
		j.judgeDrills(o, now)
	}
	j.judgeObjective(o, now)
	return j
}

// maxRefused is how long a reason may be, in bytes: it quotes what a tenant writes.
const maxRefused = 1 << 10

// admit reads the schedule, and judges the spec.
func (j *Judgement) admit(o *Objects, now time.Time) due.Schedule {
	spec := &o.Plan.Spec
	schedule, err := due.Parse(spec.Schedule, spec.TimeZone)
	if err == nil {
		err = templateError(spec.Template, o.Rules)
	}
	if err != nil {
		j.Refused, j.Reason = shorten.Text(err.Error(), maxRefused), holdfastv1alpha1.ReasonInvalid
		return schedule
	}
	by := planspec.Context{Rules: o.Rules.Own, Interval: schedule.Period(now), Older: o.Older}
	if j.Refused = shorten.Text(planspec.Forbidden(o.Plan.Name, spec, by), maxRefused); j.Refused != "" {
		j.Reason = holdfastv1alpha1.ReasonForbidden
	}
	return schedule
}

// wakeGrace is how long after the begin of a run its plan wakes by itself: usually its Schedule has signalled it. Where many are
// due together Temporal is late, and a plan that wakes by itself reads its Schedule, which makes that worse.
const wakeGrace = time.Minute

func (o *Objects) runs(schedule due.Schedule, now time.Time) plan.Runs {
	p := o.Plan
	names := map[string]bool{}
	for _, b := range o.Backups {
		names[b.Object.Name] = true
	}
	last := o.newest()
	handled, since := handledOf(p, now)
	return plan.Runs{
		Schedule: schedule,
		Jitter:   jitterOf(p, schedule, now),
		Deadline: deadlineOf(&p.Spec),
		Handled:  handled, Since: since,
		Paused: o.Paused != "",
		Busy: p.Spec.ConcurrencyPolicy != holdfastv1alpha1.ConcurrencyAllow &&
			last != nil && last.state() == retention.Unfinished && !last.deleting() && !last.gone(),
		Made: func(at time.Time) bool { return names[contract.PlanRunName(p.Name, at)] },
	}
}

// jitterOf is how much later than due the runs of a plan begin, or its drills.
func jitterOf(p *holdfastv1alpha1.BackupPlan, schedule due.Schedule, now time.Time) time.Duration {
	var most *time.Duration
	if p.Spec.Jitter != "" {
		most = new(duration(p.Spec.Jitter))
	}
	return due.Jitter(string(p.UID), most, schedule.Period(now))
}

func deadlineOf(spec *holdfastv1alpha1.BackupPlanSpec) time.Duration {
	return duration(cmp.Or(spec.StartingDeadline, holdfastv1alpha1.DefaultStartingDeadline))
}

// missedFor is how long ago a run may have been due that is counted as missed.
const missedFor = 7 * 24 * time.Hour

// skewMost is how far the clocks of two workers are apart that are kept in time.
const skewMost = 10 * time.Minute

// handledOf is until when due times are handled, and since when others count. What a new schedule would have made before, or a
// plan that was not ready, is not missed. A worker whose clock was ahead must not have handled what is to come.
func handledOf(p *holdfastv1alpha1.BackupPlan, now time.Time) (handled, since time.Time) {
	handled = p.CreationTimestamp.Time
	if p.Status.HandledDue != nil {
		handled = p.Status.HandledDue.Time
	}
	ready := meta.FindStatusCondition(p.Status.Conditions, holdfastv1alpha1.ConditionReady)
	refused := ready != nil && ready.Status == metav1.ConditionFalse
	schedule := p.Status.HandledSchedule
	switch {
	case schedule != scheduleOf(p.Spec.Schedule, p.Spec.TimeZone) && (schedule != "" || refused), handled.After(now.Add(skewMost)):
		return now, now
	case refused:
		return handled, now.Add(-deadlineOf(&p.Spec))
	}
	return handled, now.Add(-missedFor)
}

// scheduleOf is what the due times of a plan, or of its drills, are computed from.
func scheduleOf(schedule, zone string) string {
	return strings.Join(append(strings.Fields(schedule), zone), " ")
}

// newest is the newest backup that the plan has made. One that only says so must not hold up a run.
func (o *Objects) newest() *Backup {
	var newest *Backup
	for i := range o.Backups {
		if !o.Backups[i].Made {
			continue
		}
		if newest == nil || dueOf(o.Backups[i]).After(dueOf(*newest)) {
			newest = &o.Backups[i]
		}
	}
	return newest
}

// dueOf is when a backup was due, as its annotation says.
func dueOf(b Backup) time.Time { return dueAt(b.Object) }

// dueAt is when an object that a plan has made was due.
func dueAt(made metav1.Object) time.Time {
	at, err := time.Parse(time.RFC3339, made.GetAnnotations()[holdfastv1alpha1.AnnotationDue])
	if err != nil {
		return made.GetCreationTimestamp().Time
	}
	return at
}

func (o *Objects) lastGood() *Backup {
	var newest *Backup
	for i, b := range o.Backups {
		if b.Made && b.state() == retention.Good && !b.gone() && !b.deleting() && (newest == nil || b.begin().After(newest.begin())) {
			newest = &o.Backups[i]
		}
	}
	return newest
}

// ttl is the time to live of the plan's backups, and whether the administrator enforces it. It is 0 if nobody has named one and
// keep needs none: then the backups get Velero's default, as others do.
func (j *Judgement) ttl(o *Objects) (ttl time.Duration, enforced bool) {
	if rule := o.Rules.EnforceBackupSpec; rule != nil && rule.TTL.Duration > 0 {
		return rule.TTL.Duration, true
	}
	ttl = o.Plan.Spec.Template.Spec.BackupSpec.TTL.Duration
	if o.Keep != nil {
		ttl = max(cmp.Or(ttl, defaultTTL), planspec.Counts(o.Keep).TTL(j.Gap))
	}
	return ttl, false
}

// longestGap is the longest time between two of the next due times: of those of five weeks, or of the next 300 if there are more.
func longestGap(schedule due.Schedule, now time.Time) time.Duration {
	const few, many, weeks = 20, 300, 35 * 24 * time.Hour
	times := schedule.NextN(now, few)
	if times[few-1].Sub(now) < weeks {
		times = schedule.NextN(now, many)
	}
	var longest time.Duration
	for i, at := range times[1:] {
		longest = max(longest, at.Sub(times[i]))
	}
	return longest
}

// templateError says what the API server, or Holdfast, would refuse of each NonAdminBackup.
func templateError(template holdfastv1alpha1.BackupTemplate, rules policy.Policy) error {
	if template.Spec.BackupSpec == nil {
		return fmt.Errorf("template.spec.backupSpec cannot be read: %s", cmp.Or(template.Spec.Unreadable, "it is not set"))
	}
	if problem := check.BadNumber("template.spec.backupSpec", template.Spec.BackupSpec, rules.EnforceBackupSpec); problem != "" {
		return errors.New(problem)
	}
	path := field.NewPath("template", "metadata", "labels")
	problems := metav1validation.ValidateLabels(template.Metadata.Labels, path)
	problems = append(problems,
		apivalidation.ValidateAnnotations(template.Metadata.Annotations, field.NewPath("template", "metadata", "annotations"))...)
	var texts []string
	for _, problem := range problems {
		texts = append(texts, problem.Error())
	}
	slices.Sort(texts)
	if len(texts) > 0 {
		return fmt.Errorf("%s", strings.Join(texts, "; "))
	}
	return nil
}

// duration reads a duration that the CRD has validated.
func duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0
	}
	return d
}
