package synchronization_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/activities/activitytest"
	"holdfast.dev/holdfast/activities/fake"
	"holdfast.dev/holdfast/activities/synchronization"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
)

// recorded is a Velero Backup that came back, and that a plan "nightly" has made.
func recorded() *velerov1.Backup {
	made := activitytest.SyncedBackup(activitytest.Name)
	made.Labels[holdfastv1alpha1.LabelRecordedPlan] = "uid-before"
	made.Annotations[holdfastv1alpha1.AnnotationRecordedPlan] = "nightly"
	made.Annotations[holdfastv1alpha1.AnnotationRecordedDue] = "2026-11-24T01:00:00Z"
	return made
}

// A run that comes back says whose it is: of the plan that is there now, if it is.
func TestARunThatComesBackSaysWhichPlanHasMadeIt(t *testing.T) {
	for sentence, uid := range map[string]string{"the plan is there": "uid-nightly", "it is not there yet": ""} {
		t.Run(sentence, func(t *testing.T) {
			space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fake.Namespace}}
			w := fake.New(t, activitytest.Listed(), recorded(), space)
			if uid != "" {
				require.NoError(t, w.Client.Create(t.Context(), fake.BackupPlan("nightly")))
			}
			assert.Equal(t, 1, activitytest.SynchronizeNow(t, w).Made)
			nab := w.Read(activitytest.Name)
			assert.Equal(t, "nightly", nab.Labels[holdfastv1alpha1.LabelPlan])
			assert.Equal(t, "2026-11-24T01:00:00Z", nab.Annotations[holdfastv1alpha1.AnnotationDue])
			assert.Equal(t, uid, nab.Annotations[holdfastv1alpha1.AnnotationPlanUID])
		})
	}
}

func TestARecordFromABucketMayHoldAnything(t *testing.T) {
	for sentence, alter := range map[string]func(*velerov1.Backup){
		"no UID":             func(b *velerov1.Backup) { delete(b.Labels, holdfastv1alpha1.LabelRecordedPlan) },
		"no name":            func(b *velerov1.Backup) { delete(b.Annotations, holdfastv1alpha1.AnnotationRecordedPlan) },
		"no name of objects": func(b *velerov1.Backup) { b.Annotations[holdfastv1alpha1.AnnotationRecordedPlan] = "../x" },
		"no value of labels": func(b *velerov1.Backup) {
			b.Annotations[holdfastv1alpha1.AnnotationRecordedPlan] = strings.Repeat("x", 64)
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			made := recorded()
			alter(made)
			assert.Empty(t, synchronization.RecordedPlan(made))
		})
	}
}
