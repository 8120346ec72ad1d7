package plan

import (
	"time"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/policy/planspec"
	"holdfast.dev/holdfast/workflows/plan/content"
	"holdfast.dev/holdfast/workflows/plan/retention"
)

// waitsFor is how long retention leaves a run alone that is backing off.
const waitsFor = 24 * time.Hour

// retain judges which backups stay.
func (j *Judgement) retain(o *Objects, used map[string]string, now time.Time) {
	if o.Keep == nil {
		return
	}
	var backups []retention.Backup
	for _, b := range o.made() {
		if b.gone() || b.deleting() {
			continue
		}
		state := b.state()
		if b.phase() == string(oadpv1alpha1.NonAdminPhaseBackingOff) && now.Sub(b.begin()) < waitsFor {
			state = retention.Unfinished // what refuses it may pass
		}
		backups = append(backups, retention.Backup{
			Name: b.Object.Name, State: state, Begin: b.begin(), Used: used[b.Object.Name],
			Held:  b.Object.Labels[holdfastv1alpha1.LabelHold] == holdfastv1alpha1.LabelHoldValue,
			Usual: content.Usual(j.Content, b.Object.Name),
		})
	}
	var seen time.Time
	if before := o.Plan.Status.Retention; before != nil && before.LastPass != nil {
		seen = before.LastPass.Time
	}
	j.Retention = retention.Decide(planspec.Counts(o.Keep), j.Runs.Schedule.Zone(), backups, now, seen)
}
