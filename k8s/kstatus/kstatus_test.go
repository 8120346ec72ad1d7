package kstatus_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/kstatus"
	"holdfast.dev/holdfast/k8s/lifecycle"
)

// What the states of all kinds come to is in test/gitops.

func backup(phase velerov1.BackupPhase) *oadpv1alpha1.NonAdminBackup {
	nab := &oadpv1alpha1.NonAdminBackup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "nightly", Generation: 2}}
	lifecycle.ApplyVerdict(nab, lifecycle.Acceptance(nab), "b", "openshift-adp")
	lifecycle.ApplyCreated(nab)
	nab.Status.VeleroBackup.Status = &velerov1.BackupStatus{Phase: phase}
	return nab
}

// summarized is the backup after a step that has changed its phase.
func summarized(t *testing.T, before *oadpv1alpha1.NonAdminBackup, phase velerov1.BackupPhase) *oadpv1alpha1.NonAdminBackup {
	t.Helper()
	nab := before.DeepCopy()
	nab.Status.VeleroBackup.Status.Phase = phase
	kstatus.Summarize(before, nab)
	return nab
}

func texts(conditions []metav1.Condition) (texts []string) {
	for _, c := range conditions {
		texts = append(texts, c.Type+" "+string(c.Status)+" "+c.Reason)
	}
	return texts
}

func TestTheConditionsFollowTheBackup(t *testing.T) {
	before := []string{"Accepted True BackupAccepted", "Queued True BackupScheduled"}
	nab := backup("")
	for _, step := range []struct {
		phase velerov1.BackupPhase
		says  []string
	}{
		{"", []string{"Complete False Pending", "Reconciling True Pending"}},
		{"InProgress", []string{"Complete False InProgress", "Reconciling True InProgress"}},
		{"Completed", []string{"Complete True Completed"}},
		{"PartiallyFailed", []string{"Complete False PartiallyFailed", "Stalled True PartiallyFailed"}},
	} {
		nab = summarized(t, nab, step.phase)
		assert.Equal(t, append(before[:2:2], step.says...), texts(nab.Status.Conditions))
		assert.EqualValues(t, 2, nab.Status.ObservedGeneration)
	}
	complete := meta.FindStatusCondition(nab.Status.Conditions, kstatus.ConditionComplete)
	assert.EqualValues(t, 2, complete.ObservedGeneration)
}

func TestAConditionKeepsItsTimeWhileItsStatusIsTheSame(t *testing.T) {
	began := metav1.NewTime(time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC))
	nab := summarized(t, backup(""), "New")
	for i := range nab.Status.Conditions {
		nab.Status.Conditions[i].LastTransitionTime = began
	}
	running := summarized(t, nab, "InProgress")
	for _, condition := range running.Status.Conditions {
		assert.True(t, condition.LastTransitionTime.Equal(&began), condition.Type)
	}
	ended := summarized(t, running, "Completed")
	complete := meta.FindStatusCondition(ended.Status.Conditions, kstatus.ConditionComplete)
	assert.True(t, complete.LastTransitionTime.After(began.Time))
	assert.Nil(t, meta.FindStatusCondition(ended.Status.Conditions, kstatus.ConditionReconciling))
}

// A step that changes nothing writes nothing, also where another installation's CRD drops observedGeneration.
func TestNothingIsWrittenTwice(t *testing.T) {
	nab := summarized(t, backup(""), "InProgress")
	assert.Equal(t, nab, summarized(t, nab, "InProgress"))
	nab.Status.ObservedGeneration = 0
	assert.Equal(t, nab, summarized(t, nab, "InProgress"))
	assert.EqualValues(t, 2, summarized(t, nab, "Completed").Status.ObservedGeneration)
}

// FoundationDB's kinds write their list anew in each pass.
func TestAConditionThatWasLeftOutKeepsItsTime(t *testing.T) {
	began := metav1.NewTime(time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC))
	ready := metav1.Condition{Type: "Ready", Status: "False", Reason: fdbv1alpha1.ReasonSecretMissing, LastTransitionTime: began}
	before := &fdbv1alpha1.FoundationDBBackup{}
	before.Status.Conditions = []metav1.Condition{ready, {
		Type: "Stalled", Status: "True", Reason: fdbv1alpha1.ReasonSecretMissing, LastTransitionTime: began,
	}}
	after := before.DeepCopy()
	after.Status.Conditions = []metav1.Condition{ready}
	kstatus.Summarize(before, after)
	assert.Equal(t, before, after)
	require.Empty(t, fdbv1alpha1.Unmet(after.Status.Conditions), "they repeat Ready")
}

// What Velero says may be longer than a condition's message may be.
func TestALongTextIsCut(t *testing.T) {
	before := backup("InProgress")
	after := before.DeepCopy()
	after.Status.VeleroBackup.Status = &velerov1.BackupStatus{Phase: "FailedValidation", ValidationErrors: []string{strings.Repeat("x", 40_000)}}
	kstatus.Summarize(before, after)
	for _, condition := range after.Status.Conditions {
		assert.LessOrEqual(t, len(condition.Message), 1024, condition.Type)
	}
}

// A worker of a release before these conditions writes the end of a backup, and leaves what the newer one has written.
func TestASummaryOfAnotherStateIsNotConsistent(t *testing.T) {
	unknown := backup("Completed")
	assert.True(t, kstatus.Consistent(unknown), "an object that ended before is left as it is")
	running := summarized(t, backup(""), "InProgress")
	assert.True(t, kstatus.Consistent(running))
	edited := running.DeepCopy()
	edited.Generation++
	lifecycle.ApplyVerdict(edited, lifecycle.Acceptance(edited), "b", "openshift-adp")
	assert.False(t, kstatus.Consistent(edited), "the same verdict about a newer spec")
	running.Status.VeleroBackup.Status.Phase = "Completed"
	assert.False(t, kstatus.Consistent(running))
	assert.True(t, kstatus.Consistent(summarized(t, running, "Completed")))
	assert.False(t, kstatus.Consistent(&oadpv1alpha1.NonAdminBackupStorageLocation{}), "a location does not end")
}
