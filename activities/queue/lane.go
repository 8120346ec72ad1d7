package queue

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

// Lane returns the lane in which an object waits. Its labels are the tenant's: who removes that of a plan gets no more than by
// making a backup by hand.
func Lane(object metav1.Object) int {
	labels := object.GetLabels()
	switch {
	case labels[holdfastv1alpha1.LabelPlan] == "":
		return contract.LaneHand
	case labels[holdfastv1alpha1.LabelDefaultPlan] != "":
		return contract.LaneDefaultPlan
	}
	return contract.LanePlan
}
