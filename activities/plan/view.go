package plan

import (
	"time"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

// view is what the workflow decides by.
func (s *subject) view() contract.PlanView {
	j, p := s.judge, s.Plan
	if p == nil {
		return contract.PlanView{}
	}
	v := contract.PlanView{
		Found: true, Ready: j.Refused == "", Why: j.Refused, Paused: string(s.Paused), Objective: string(j.Objective.Worst()),
		MadeNow: s.made, Recorded: s.recorded, Stored: s.stored(), Schedule: s.schedule,
	}
	if v.MadeNow == nil {
		v.MadeNow = s.madeBefore()
	}
	if !j.Passed.Make.IsZero() {
		v.Due = j.Passed.Make.Unix()
	}
	requested := holdfastv1alpha1.RequestedRun(p.Annotations)
	v.RunNow = v.Ready && requested != "" && requested != p.Status.HandledRunNow
	if p.Status.NextRun != nil {
		v.NextRun = p.Status.NextRun.Unix()
	}
	if j.LastGood != nil {
		v.LastGood = j.LastGood.begin().Unix()
	}
	if j.LastVerified != nil {
		v.LastVerified = j.LastVerified.Time.Unix()
	}
	if !j.Drills.Passed.Make.IsZero() {
		v.DrillDue = j.Drills.Passed.Make.Unix()
	}
	v.DeleteDrill = j.Drills.Excess
	for _, b := range s.Backups {
		if spec := b.Object.Spec; b.Made && (spec.DeleteBackup || spec.ForceDeleteBackup) && !b.undeletable() {
			v.Deleting++
		}
	}
	if v.Ready && v.Deleting == 0 {
		v.Delete = s.deletion()
	}
	v.Extend = s.extension()
	v.WakeIn = time.Hour
	if wake := s.judge.Wake; !wake.IsZero() { // the extension may be the next that is due
		v.WakeIn = max(0, wake.Sub(s.now))
	}
	if len(s.Returned) > 0 {
		v.WakeIn = min(v.WakeIn, adoptAgain)
	}
	return v
}

// deletion is the backup that is to be deleted next: one that no rule keeps, or the object of one that Velero removed long ago.
func (s *subject) deletion() string {
	if keep := s.Keep; keep != nil && !keep.DryRun && len(s.judge.Retention.Due) > 0 {
		return s.judge.Retention.Due[0].Name
	}
	for _, b := range s.Backups {
		if s.removable(b) {
			return b.Object.Name
		}
	}
	return ""
}
