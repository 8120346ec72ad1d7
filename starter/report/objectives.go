package report

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/plan"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/starter/velero"
)

// MissedObjective is a BackupPlan or FoundationDBBackup that misses its objective.
type MissedObjective struct {
	Kind       string    `json:"kind"`
	Namespace  string    `json:"namespace"`
	Name       string    `json:"name"`
	Reason     string    `json:"reason"`
	Since      time.Time `json:"since"`
	ForSeconds int64     `json:"forSeconds"`
	// LastGood is when the newest good backup began; where only the verification is late, when the newest verified one was complete;
	// of FoundationDB the latest restorable point.
	LastGood *time.Time `json:"lastGood,omitempty"`
}

// unverified is in place of the status of an objective that only the verification misses: backups are made.
const unverified = "Unverified"

// objectivesOf are the statuses of the objectives of plans, by namespace.
func objectivesOf(o Objects) map[string][]string {
	objectives := map[string][]string{}
	for i := range o.Plans {
		p := &o.Plans[i]
		condition := objectiveOf(p)
		if condition == nil {
			continue
		}
		status := string(condition.Status)
		if _, verification := plan.Misses(&p.Status); verification {
			status = unverified
		}
		objectives[p.Namespace] = append(objectives[p.Namespace], status)
	}
	return objectives
}

// protection judges a namespace by the objectives of its plans.
func (r *Report) protection(h velero.Holding, objectives []string) Protection {
	within := func(at *time.Time) bool { return at != nil && !at.Before(r.From) }
	switch {
	case h.Workloads+h.Claims+h.Data == 0:
		return Empty
	case slices.Contains(objectives, string(metav1.ConditionFalse)):
		return Missed
	case !within(h.LastGood) && within(h.LastPartly):
		return Partly
	case !within(h.LastGood):
		return Unprotected
	case slices.Contains(objectives, string(metav1.ConditionTrue)):
		return Met
	}
	return BackedUp
}

func objectiveOf(plan *holdfastv1alpha1.BackupPlan) *metav1.Condition {
	return meta.FindStatusCondition(plan.Status.Conditions, holdfastv1alpha1.ConditionObjectiveMet)
}

// missed is an object's objective, if that is missed now.
func (r *Report) missed(kind string, object client.Object, condition *metav1.Condition, good *metav1.Time) {
	if condition == nil || condition.Status != metav1.ConditionFalse {
		return
	}
	since := condition.LastTransitionTime.UTC()
	missed := MissedObjective{
		Kind: kind, Namespace: object.GetNamespace(), Name: object.GetName(), Reason: condition.Reason, Since: since,
		ForSeconds: int64(r.Until.Sub(since) / time.Second),
	}
	if good != nil {
		at := good.UTC()
		missed.LastGood = &at
	}
	r.Missing = append(r.Missing, missed)
}

func (r *Report) addMissing(o Objects) {
	for i := range o.Plans {
		p := &o.Plans[i]
		var good *metav1.Time
		switch _, verification := plan.Misses(&p.Status); {
		case verification && p.Status.LastVerified != nil:
			good = &p.Status.LastVerified.Time
		case !verification && p.Status.LastGood != nil:
			good = &p.Status.LastGood.Time
		}
		r.missed(holdfastv1alpha1.KindBackupPlan, p, objectiveOf(p), good)
	}
	for i := range o.Databases {
		database := &o.Databases[i]
		var latest *metav1.Time
		if all := database.Status.Backups; len(all) > 0 && all[len(all)-1].LatestRestorable != nil {
			latest = all[len(all)-1].LatestRestorable.Timestamp
		}
		condition := meta.FindStatusCondition(database.Status.Conditions, fdbv1alpha1.ConditionObjectiveMet)
		r.missed(fdbv1alpha1.KindFoundationDBBackup, database, condition, latest)
	}
	slices.SortFunc(r.Missing, func(a, b MissedObjective) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}
