package restore

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

// PlanDue reports whether a plan may be recorded: there is none yet, and it fits the present spec.
func (o *Objects) PlanDue(planning contract.FDBRestorePlanning) bool {
	object, plan := o.Object, planning.Plan
	switch {
	case object.Status.Plan != nil, object.Generation != planning.Generation, !object.DeletionTimestamp.IsZero():
		return false
	case object.Spec.RestoreState == fdbv1alpha1.RestoreStateStopped:
		return false
	}
	return plan.Tag == Tag(object) && plan.Version > 0 && plan.URL != "" && plan.URL == o.URL && plan.Destination != "" &&
		plan.Destination == o.Cluster.Owner()
}

// ApplyPlan records what is going to be restored, so that a repeated start restores the same. A plan never changes.
func ApplyPlan(object *fdbv1alpha1.FoundationDBRestore, plan contract.FDBRestorePlan) {
	if object.Status.Plan != nil {
		return
	}
	written := &fdbv1alpha1.RestorePlan{Tag: plan.Tag, URL: plan.URL, Version: plan.Version, Destination: plan.Destination}
	if plan.Time != 0 {
		at := metav1.NewTime(time.Unix(plan.Time, 0).UTC())
		written.Timestamp = &at
	}
	object.Status.Plan = written
}
