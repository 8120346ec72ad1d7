package synchronization_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/activities/synchronization"
)

// What a bucket says of a plan counts only where an administrator's key is needed to write it, and never of what was given up.
func TestWhichRecordsOfPlansAreProven(t *testing.T) {
	ended := metav1.NewTime(time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC))
	back := func() *velerov1.Backup {
		return &velerov1.Backup{
			ObjectMeta: metav1.ObjectMeta{UID: "u-1", CreationTimestamp: metav1.NewTime(ended.Add(time.Hour))},
			Status:     velerov1.BackupStatus{CompletionTimestamp: &ended},
		}
	}
	givenUp, madeHere := back(), back()
	synchronization.SetState(givenUp, synchronization.StateReleased)
	madeHere.CreationTimestamp = metav1.NewTime(ended.Add(-time.Hour))
	admins, tenants := &synchronization.Location{}, &synchronization.Location{Tenants: true}
	assert.True(t, synchronization.PlanIsProven(back(), admins))
	assert.False(t, synchronization.PlanIsProven(back(), tenants), "anyone with the key to the bucket can write that")
	assert.False(t, synchronization.PlanIsProven(givenUp, admins), "it is the tenant's own now")
	assert.False(t, synchronization.PlanIsProven(madeHere, admins))
}
