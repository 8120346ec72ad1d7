package backup_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"holdfast.dev/holdfast/activities/activitytest"
	"holdfast.dev/holdfast/activities/backup"
	"holdfast.dev/holdfast/activities/fake"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

const drilled = "nightly"

// concluded is a drill of the backup that has its verdict, some minutes after two o'clock.
func concluded(name string, minute int, verified metav1.ConditionStatus) *holdfastv1alpha1.RestoreDrill {
	drill := fake.Drill(name, drilled)
	at := metav1.NewTime(time.Date(2026, 11, 25, 2, minute, 0, 0, time.UTC))
	drill.Status = holdfastv1alpha1.RestoreDrillStatus{
		Phase: holdfastv1alpha1.DrillEnded, Backup: drilled, BackupUID: "uid-" + drilled, Concluded: &at, Ready: &at,
		Measured: &holdfastv1alpha1.DrillMeasured{RestoreSeconds: 42, ReadySeconds: 5, Objects: 4},
		Conditions: []metav1.Condition{{
			Type: holdfastv1alpha1.ConditionVerified, Status: verified, Reason: "Because", Message: "4 objects were restored in 42 seconds",
		}},
	}
	return drill
}

// shows has a backup be refreshed for a drill, and says what its condition says then.
func shows(t *testing.T, w *fake.World, drill string) string {
	t.Helper()
	view, err := activitytest.Run(t, w, contract.RefreshBackup.Name, contract.BackupStep{Ref: fake.Ref(drilled), Drill: drill})
	require.NoError(t, err)
	assert.False(t, view.VerdictDue, "it is shown")
	condition := meta.FindStatusCondition(w.Read(drilled).Status.Conditions, string(oadpv1alpha1.NonAdminConditionVerified))
	if condition == nil {
		return ""
	}
	return string(condition.Status) + " " + condition.Reason + " " + condition.Message
}

func TestABackupShowsWhatItsNewestDrillHasShown(t *testing.T) {
	w := fake.New(t, append(fake.Taken(drilled, fake.AdminLocation, ""),
		concluded("first", 1, metav1.ConditionTrue), concluded("second", 2, metav1.ConditionFalse),
		concluded("same", 2, metav1.ConditionTrue), concluded("unmade", 3, metav1.ConditionUnknown))...)
	const first = "True Because RestoreDrill first, 2026-11-25T02:01:00Z: 4 objects were restored in 42 seconds; " +
		"the workloads were ready 5 seconds later"
	const second = "False Because RestoreDrill second, 2026-11-25T02:02:00Z: 4 objects were restored in 42 seconds"
	assert.Empty(t, shows(t, w, ""), "nobody says that there are drills")
	assert.Equal(t, first, shows(t, w, "first"))
	assert.Equal(t, "Normal Because RestoreDrill first, 2026-11-25T02:01:00Z: 4 objects were restored in 42 seconds; "+
		"the workloads were ready 5 seconds later", <-w.Events)
	assert.Equal(t, &oadpv1alpha1.BackupDrill{
		Name: "first", Concluded: metav1.Date(2026, 11, 25, 2, 1, 0, 0, time.UTC), RestoreSeconds: 42, ReadySeconds: 5,
	}, inUTC(w.Read(drilled).Status.LastDrill))
	assert.Equal(t, second, shows(t, w, "second"))
	assert.Equal(t, second, shows(t, w, "first"), "an older one")
	assert.Equal(t, second, shows(t, w, "same"), "of the same second, and before it by name")
	assert.Equal(t, second, shows(t, w, "unmade"), "it says nothing about the backup")
	require.NoError(t, w.Client.Delete(t.Context(), w.ReadDrill("second")))
	assert.Equal(t, second, shows(t, w, "second"), "the drill is gone, its verdict stays")
	assert.Len(t, w.Events, 1, "one Event for each that was shown")
}

// OADP's own CRD prunes the field: a verdict is shown once nevertheless.
func TestAVerdictIsShownOnceWhereItsFieldIsPruned(t *testing.T) {
	w := fake.New(t, append(fake.Taken(drilled, fake.AdminLocation, ""),
		concluded("first", 1, metav1.ConditionTrue), concluded("second", 2, metav1.ConditionFalse))...)
	for _, drill := range []string{"second", "first", "second"} {
		shown := shows(t, w, drill)
		assert.Contains(t, shown, "False Because RestoreDrill second, 2026-11-25T02:02:00Z: ")
		nab := w.Read(drilled)
		nab.Status.LastDrill = nil
		require.NoError(t, w.Client.Status().Update(t.Context(), nab))
	}
	assert.Len(t, w.Events, 1)
	last := w.Read(drilled).Status.NewestDrill()
	assert.Equal(t, "second", last.Name)
	assert.True(t, last.Concluded.Equal(concluded("second", 2, metav1.ConditionFalse).Status.Concluded))
}

func inUTC(drill *oadpv1alpha1.BackupDrill) *oadpv1alpha1.BackupDrill {
	drill.Concluded = metav1.NewTime(drill.Concluded.UTC())
	return drill
}

func TestADrillOfAnotherBackupShowsNothing(t *testing.T) {
	for title, alter := range map[string]func(*holdfastv1alpha1.RestoreDrill){
		"of one that had the name before": func(d *holdfastv1alpha1.RestoreDrill) { d.Status.BackupUID = types.UID("uid-before") },
		"of none":                         func(d *holdfastv1alpha1.RestoreDrill) { d.Status.BackupUID = "" },
		"not concluded":                   func(d *holdfastv1alpha1.RestoreDrill) { d.Status.Concluded = nil },
		"without a condition":             func(d *holdfastv1alpha1.RestoreDrill) { d.Status.Conditions = nil },
		"of another namespace":            func(d *holdfastv1alpha1.RestoreDrill) { d.Namespace = "other" },
	} {
		drill := concluded("first", 1, metav1.ConditionTrue)
		alter(drill)
		o := &backup.Objects{NAB: fake.NAB(drilled)}
		o.NoteDrill(drill)
		assert.Empty(t, o.DrillDue(), title)
		assert.False(t, o.View(time.Now()).VerdictDue, title)
	}
	o := &backup.Objects{NAB: fake.NAB(drilled)}
	for _, drill := range []*holdfastv1alpha1.RestoreDrill{
		concluded("a", 1, metav1.ConditionTrue), concluded("b", 9, metav1.ConditionTrue), concluded("c", 5, metav1.ConditionFalse),
	} {
		o.NoteDrill(drill)
	}
	assert.Equal(t, "b", o.DrillDue(), "the newest, in any order")
	assert.True(t, o.View(time.Now()).VerdictDue)
}
