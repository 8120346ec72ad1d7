package gather

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

func TestTheObjectiveIsMeasuredFromTheLatestRestorablePoint(t *testing.T) {
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	for title, test := range map[string]struct {
		age    time.Duration // of the latest restorable point; 0 if there is none
		old    time.Duration // how old the object is
		state  fdbv1alpha1.BackupState
		status metav1.ConditionStatus
		reason string
	}{
		"young enough":      {time.Minute, time.Hour, "", metav1.ConditionTrue, "Met"},
		"too old":           {10 * time.Minute, time.Hour, "Running", metav1.ConditionFalse, "Stale"},
		"none yet":          {0, time.Minute, "", metav1.ConditionUnknown, "Unknown"},
		"none for too long": {0, time.Hour, "", metav1.ConditionFalse, "NeverSucceeded"},
		"stopped":           {time.Minute, time.Hour, "Stopped", metav1.ConditionUnknown, "Paused"},
	} {
		object := &fdbv1alpha1.FoundationDBBackup{
			ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(now.Add(-test.old)), Generation: 1},
			Spec: fdbv1alpha1.FoundationDBBackupSpec{
				BackupState: test.state, Objective: &fdbv1alpha1.BackupObjective{RecoveryPoint: "10m"},
			},
		}
		found := contract.FDBFindings{Generation: 1, Backups: []contract.FDBBackup{{URL: "file:///a"}}}
		if test.age > 0 {
			found.Backups[0].Latest = &contract.FDBPoint{Version: 1, Time: now.Add(-test.age).Unix()}
		}
		ApplyFindings(object, found, now)
		condition := meta.FindStatusCondition(object.Status.Conditions, fdbv1alpha1.ConditionObjectiveMet)
		require.NotNil(t, condition, title)
		assert.Equal(t, test.status, condition.Status, title)
		assert.Equal(t, test.reason, condition.Reason, title)
		assert.True(t, object.Status.Reconciled, "%s: it says nothing about the spec", title)
		assert.Empty(t, fdbv1alpha1.Unmet(object.Status.Conditions), title)
		since := condition.LastTransitionTime

		before := object.Status.DeepCopy()
		ApplyFindings(object, found, now.Add(time.Second))
		assert.Equal(t, since, meta.FindStatusCondition(object.Status.Conditions, fdbv1alpha1.ConditionObjectiveMet).LastTransitionTime, title)
		assert.Empty(t, StatusEvents(*before, object.Status), title)
		object.Spec.Objective = nil
		ApplyFindings(object, found, now)
		assert.Nil(t, meta.FindStatusCondition(object.Status.Conditions, fdbv1alpha1.ConditionObjectiveMet), title)
	}
}
