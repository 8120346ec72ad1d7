package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

// MakeDrill makes the RestoreDrill that is due, or finds the one that an earlier attempt has made. One that the API server
// refuses is missed. If none is due, it is Refresh.
func (a *Activities) MakeDrill(ctx context.Context, s *subject, _ contract.PlanStep) error {
	at := s.judge.Drills.Passed.Make
	if at.IsZero() {
		return a.show(ctx, s)
	}
	drill, err := a.makeDrill(ctx, s, at)
	refusal := refused(err, true, s.now.Sub(at.Add(s.judge.Drills.Runs.Jitter)))
	if err != nil && refusal == "" {
		return err
	}
	before := s.Plan.Status.DeepCopy()
	changed, err := a.PatchStatus(ctx, s.Plan, func() { s.applyDrill(drill, at) })
	if changed {
		if refusal != "" && before.Drills != nil {
			before.Drills.Missed++ // has an Event of its own
		}
		a.recordChanges(s.Plan, before)
		a.recordDrill(s.Plan, drill, refusal)
	}
	s.judge = Judge(s.Objects, nil, s.now)
	return err
}

// makeDrill creates the RestoreDrill of a due time: of the newest good backup, which it names, so that what it verifies does not
// change with the next run.
func (a *Activities) makeDrill(ctx context.Context, s *subject, at time.Time) (*holdfastv1alpha1.RestoreDrill, error) {
	name := contract.PlanRunName(s.Plan.Name, at)
	if made := slices.IndexFunc(s.Drills, func(d holdfastv1alpha1.RestoreDrill) bool { return d.Name == name }); made >= 0 {
		return &s.Drills[made], nil
	}
	drill := buildDrill(s.Plan, s.judge.LastGood.Object.Name, at)
	err := a.Client.Create(ctx, drill)
	if err == nil {
		s.Drills = slices.Insert(s.Drills, 0, *drill)
		return drill, nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("create RestoreDrill %s: %w", client.ObjectKeyFromObject(drill), err)
	}
	found := &holdfastv1alpha1.RestoreDrill{}
	exists, err := k8s.Get(ctx, a.Client, holdfastv1alpha1.KindRestoreDrill, drill.Namespace, drill.Name, found)
	switch {
	case err != nil:
		return nil, err
	case exists && found.Annotations[holdfastv1alpha1.AnnotationPlanUID] == string(s.Plan.UID):
		return found, nil
	}
	return nil, fmt.Errorf("create RestoreDrill %s: %w", client.ObjectKeyFromObject(drill), errDrillNameTaken)
}

// errDrillNameTaken says that the name of a drill is that of a RestoreDrill of the tenant's own.
var errDrillNameTaken = errors.New("a RestoreDrill of that name exists and is none of the plan's")

// buildDrill is the RestoreDrill of a due time. It goes with its plan.
func buildDrill(p *holdfastv1alpha1.BackupPlan, backup string, at time.Time) *holdfastv1alpha1.RestoreDrill {
	spec := p.Spec.Drill.DeepCopy()
	return &holdfastv1alpha1.RestoreDrill{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.Namespace, Name: contract.PlanRunName(p.Name, at),
			Labels: map[string]string{holdfastv1alpha1.LabelPlan: p.Name},
			Annotations: map[string]string{
				holdfastv1alpha1.AnnotationPlanUID: string(p.UID), holdfastv1alpha1.AnnotationDue: at.UTC().Format(time.RFC3339),
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: holdfastv1alpha1.GroupVersion.String(), Kind: holdfastv1alpha1.KindBackupPlan, Name: p.Name, UID: p.UID,
			}},
		},
		Spec: holdfastv1alpha1.RestoreDrillSpec{
			BackupName: backup, Checks: spec.Checks, Timeout: spec.Timeout, KeepOnFailure: spec.KeepOnFailure,
		},
	}
}

// DeleteDrill deletes a drill of the plan that is over, if it is still in excess. What it has shown is in the status of its
// backup.
func (a *Activities) DeleteDrill(ctx context.Context, s *subject, step contract.PlanStep) error {
	at := slices.IndexFunc(s.Drills, func(d holdfastv1alpha1.RestoreDrill) bool { return d.Name == step.Drill })
	if at < 0 || s.judge.Drills.Excess != step.Drill {
		return a.show(ctx, s)
	}
	if err := a.Delete(ctx, &s.Drills[at]); err != nil {
		return err
	}
	s.Drills = slices.Delete(s.Drills, at, at+1)
	s.judge = Judge(s.Objects, nil, s.now)
	return nil
}

// applyDrill records what became of a drill that was due; it is nil if it was refused.
func (s *subject) applyDrill(drill *holdfastv1alpha1.RestoreDrill, at time.Time) {
	apply(s.Objects, s.judge, s.now)
	status := s.Plan.Status.Drills
	status.HandledDue = &metav1.Time{Time: s.judge.Drills.Passed.Handled}
	status.Missed += int64(len(s.judge.Drills.Passed.Missed))
	if drill == nil {
		status.Missed++
		return
	}
	status.Made++
	status.Last = drillRun(drill, at)
}

func drillRun(drill *holdfastv1alpha1.RestoreDrill, at time.Time) *holdfastv1alpha1.DrillRun {
	run := &holdfastv1alpha1.DrillRun{
		Name: drill.Name, Time: metav1.NewTime(at), Backup: drill.Spec.BackupName, Phase: string(drill.Status.Phase),
	}
	if verified := meta.FindStatusCondition(drill.Status.Conditions, holdfastv1alpha1.ConditionVerified); verified != nil {
		run.Verified = verified.Reason
	}
	return run
}

// applyDrills shows the drills, and counts due times without one.
func applyDrills(o *Objects, j Judgement, now time.Time) {
	p := o.Plan
	if p.Spec.Drill == nil {
		p.Status.Drills = nil
		return
	}
	if p.Status.Drills == nil {
		p.Status.Drills = &holdfastv1alpha1.PlanDrills{Since: &metav1.Time{Time: now}}
	}
	status := p.Status.Drills
	status.Next = nil
	if j.Refused != "" {
		return
	}
	if j.Drills.Refused == "" {
		applyDrillsDue(o, j, now)
	}
	if last := status.Last; last != nil {
		last.Phase = holdfastv1alpha1.PhaseDeleted
		for i := range o.Drills {
			if o.Drills[i].Name == last.Name {
				status.Last = drillRun(&o.Drills[i], last.Time.Time)
			}
		}
	}
}

// applyDrillsDue shows when the next drill begins, and counts the due times that have passed.
func applyDrillsDue(o *Objects, j Judgement, now time.Time) {
	p, status := o.Plan, o.Plan.Status.Drills
	if o.Paused == "" {
		status.Next = &metav1.Time{Time: j.Drills.Runs.Next(now)}
	}
	status.HandledSchedule = scheduleOf(p.Spec.Drill.Schedule, p.Spec.TimeZone)
	passed := j.Drills.Passed
	if !passed.Make.IsZero() { // what came while no drills were made stays uncounted when Ready does not say so any more
		if since := j.Drills.Runs.Since; status.HandledDue != nil && since.After(status.HandledDue.Time) {
			status.HandledDue = &metav1.Time{Time: since.Truncate(time.Second)}
		}
		return
	}
	status.HandledDue = &metav1.Time{Time: passed.Handled.Truncate(time.Second)}
	status.Missed += int64(len(passed.Missed))
	if passed.Skipped {
		status.Skipped++
		status.LastSkipped = &holdfastv1alpha1.SkippedDrill{Time: metav1.NewTime(passed.Handled), Why: j.Drills.Blocked}
	}
}
