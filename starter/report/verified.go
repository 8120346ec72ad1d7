package report

import (
	"fmt"

	"holdfast.dev/holdfast/activities/plan"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
)

// verified are the newest backups that drills have verified, by namespace. A plan remembers one that is gone.
func verified(o Objects) map[string]*holdfastv1alpha1.VerifiedRun {
	newest := map[string]*holdfastv1alpha1.VerifiedRun{}
	note := func(namespace string, v *holdfastv1alpha1.VerifiedRun) {
		if v != nil && plan.Later(v, newest[namespace]) {
			newest[namespace] = v
		}
	}
	for i := range o.Backups {
		note(o.Backups[i].Namespace, plan.Verified(&o.Backups[i]))
	}
	for i := range o.Plans {
		note(o.Plans[i].Namespace, o.Plans[i].Status.LastVerified)
	}
	return newest
}

// verifiedText is a cell of the report: when the backup was complete, and how long it took to come back.
func verifiedText(v *holdfastv1alpha1.VerifiedRun) string {
	if v == nil {
		return ""
	}
	text := v.Time.UTC().Format("2006-01-02 15:04")
	if v.Measured() {
		text += fmt.Sprintf(", back in %d s", v.RestoreSeconds+v.ReadySeconds)
	}
	return text
}
