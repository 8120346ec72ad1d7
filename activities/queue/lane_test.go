package queue_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"holdfast.dev/holdfast/activities/fake"
	"holdfast.dev/holdfast/activities/queue"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

func TestTheLaneIsReadFromTheLabels(t *testing.T) {
	for lane, labels := range map[int]map[string]string{
		contract.LaneHand:        {holdfastv1alpha1.LabelDefaultPlan: "true"},
		contract.LanePlan:        {holdfastv1alpha1.LabelPlan: "nightly"},
		contract.LaneDefaultPlan: {holdfastv1alpha1.LabelPlan: "nightly", holdfastv1alpha1.LabelDefaultPlan: "true"},
	} {
		nab := fake.NAB("nightly")
		nab.Labels = labels
		assert.Equal(t, lane, queue.Lane(nab), labels)
	}
}
