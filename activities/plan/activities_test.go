package plan_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/fake"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/workflows/contract"
)

func TestARunIsAnOrdinaryNonAdminBackup(t *testing.T) {
	s := newScene(t, func(p *holdfastv1alpha1.BackupPlan) {
		p.Spec.Template.Metadata = holdfastv1alpha1.TemplateMetadata{
			Labels: map[string]string{"team": "a"}, Annotations: map[string]string{"why": "nightly"},
		}
		p.Spec.Template.Spec.BackupSpec.StorageLocation = "store"
	})
	view := s.refresh()
	assert.True(t, view.Ready)
	assert.Zero(t, view.Due)
	assert.Equal(t, "2026-08-01T12:01:00Z", s.status().NextRun.UTC().Format(time.RFC3339))
	assert.Equal(t, "True Scheduled", s.reason("Ready"))
	require.Len(t, s.schedules.Wanted[minutely].Next, 32)

	s.now = fake.PlanTime.Add(time.Minute)
	nab := s.run()
	assert.Equal(t, "minutely-20260801120100", nab.Name)
	assert.Equal(t, map[string]string{"team": "a", holdfastv1alpha1.LabelPlan: minutely}, nab.Labels)
	assert.Equal(t, map[string]string{
		"why": "nightly", holdfastv1alpha1.AnnotationPlanUID: "uid-" + minutely, holdfastv1alpha1.AnnotationDue: "2026-08-01T12:01:00Z",
	}, nab.Annotations)
	assert.Equal(t, "store", nab.Spec.BackupSpec.StorageLocation)
	assert.Equal(t, nab.Name, s.status().LastRun.Name)
	assert.Zero(t, s.refresh().Due, "it is made")
}

// A worker may be killed at any moment: the same run again finds its own, and counts nothing twice.
func TestARunThatIsRepeatedFindsItsOwn(t *testing.T) {
	s := newScene(t, nil)
	s.now = fake.PlanTime.Add(time.Minute)
	require.NotZero(t, s.refresh().Due)
	failing := errors.New("connection reset")
	s.Fail(func(_ string, object client.Object) error {
		if _, plan := object.(*holdfastv1alpha1.BackupPlan); plan {
			return failing
		}
		return nil
	})
	_, err := s.try(contract.RunPlan.Name, contract.PlanStep{})
	require.Error(t, err, "made, and not shown")
	s.Fail(nil)
	made := s.act(contract.RunPlan.Name, contract.PlanStep{}).MadeNow
	require.NotNil(t, made)
	s.made = nil // it was killed before the workflow knew
	assert.Equal(t, made, s.act(contract.RunPlan.Name, contract.PlanStep{}).MadeNow)
	assert.Len(t, s.status().Recent, 1)
	s.ends(s.Read(made.Name), velerov1.BackupPhaseCompleted)
	s.act(contract.RecordPlanBackups.Name, contract.PlanStep{})
	s.made = nil
	assert.Nil(t, s.act(contract.RunPlan.Name, contract.PlanStep{}).MadeNow, "there is a record")
	list := &oadpv1alpha1.NonAdminBackupList{}
	require.NoError(t, s.Client.List(t.Context(), list))
	assert.Len(t, list.Items, 1)
}

func TestOfRunsThatWereMissedTheNewestIsMadeUp(t *testing.T) {
	s := newScene(t, nil)
	s.now = fake.PlanTime.Add(3 * time.Minute)
	nab := s.run()
	assert.Equal(t, "minutely-20260801120300", nab.Name)
	assert.Equal(t, int64(2), s.status().Counts.Missed)

	s = newScene(t, func(p *holdfastv1alpha1.BackupPlan) { p.Spec.Schedule = "1 12 * * *" })
	s.now = fake.PlanTime.Add(11 * time.Minute)
	assert.Zero(t, s.refresh().Due, "its deadline has passed")
	assert.Equal(t, int64(1), s.status().Counts.Missed)
	s.refresh()
	assert.Equal(t, int64(1), s.status().Counts.Missed, "once")
}

func TestARunIsSkippedWhileTheLastOneIsNotFinished(t *testing.T) {
	s := newScene(t, nil)
	s.now = fake.PlanTime.Add(time.Minute)
	nab := s.run()
	s.now = s.now.Add(time.Minute)
	assert.Zero(t, s.refresh().Due)
	assert.Equal(t, int64(1), s.status().Counts.Skipped)
	s.ends(nab, velerov1.BackupPhaseCompleted)
	s.now = s.now.Add(time.Minute)
	assert.NotZero(t, s.refresh().Due)
	assert.Equal(t, int64(1), s.status().Counts.Good)
	assert.Equal(t, int64(1), s.status().Counts.Skipped)
}

func TestAPausedPlanMakesNoRunsAndMissesNone(t *testing.T) {
	s := newScene(t, func(p *holdfastv1alpha1.BackupPlan) { p.Spec.Paused = true })
	s.schedules.Operator = true
	s.now = fake.PlanTime.Add(5 * time.Minute)
	view := s.refresh()
	assert.Zero(t, view.Due)
	assert.Equal(t, holdfastv1alpha1.PausedByBoth, s.status().Paused)
	assert.Nil(t, s.status().NextRun)
	assert.Zero(t, s.status().Counts.Missed)
	assert.True(t, s.schedules.Wanted[minutely].Paused)
}

// What a new schedule would have made before it was written is not missed.
func TestANewScheduleBeginsNow(t *testing.T) {
	s := newScene(t, func(p *holdfastv1alpha1.BackupPlan) { p.Spec.Schedule = "0 0 * * *" })
	s.refresh()
	s.now = fake.PlanTime.Add(6 * time.Hour)
	p := s.ReadPlan(minutely)
	p.Spec.Schedule = "* * * * *"
	require.NoError(t, s.Client.Update(t.Context(), p))
	assert.Zero(t, s.refresh().Due)
	assert.Zero(t, s.status().Counts.Missed)
	s.now = s.now.Add(time.Minute)
	assert.NotZero(t, s.refresh().Due)
}

func TestTheObjectiveIsMeasuredFromTheBeginOfTheNewestGoodBackup(t *testing.T) {
	s := newScene(t, func(p *holdfastv1alpha1.BackupPlan) {
		p.Spec.Objective = &holdfastv1alpha1.Objective{RecoveryPoint: "10m"}
	})
	s.refresh()
	assert.Equal(t, "Unknown Unknown", s.reason("ObjectiveMet"))
	s.now = s.now.Add(time.Minute)
	s.ends(s.run(), velerov1.BackupPhaseCompleted)
	view := s.refresh()
	assert.Equal(t, "True Met", s.reason("ObjectiveMet"))
	assert.LessOrEqual(t, view.WakeIn, 10*time.Minute)
	s.now = s.now.Add(10 * time.Minute)
	s.refresh()
	assert.Equal(t, "False Stale", s.reason("ObjectiveMet"))
	s.schedules.Operator = true
	s.refresh()
	assert.Equal(t, "Unknown Paused", s.reason("ObjectiveMet"))
}

func TestWhatIsNotAllowedMakesNoRuns(t *testing.T) {
	s := newScene(t, nil)
	s.Policy.Plans = policy.Plans{MinInterval: metav1.Duration{Duration: time.Hour}}
	s.now = s.now.Add(time.Minute)
	view := s.refresh()
	assert.False(t, view.Ready)
	assert.Zero(t, view.Due)
	assert.Equal(t, "False ForbiddenByPolicy", s.reason("Ready"))
	assert.True(t, s.schedules.Wanted[minutely].Refused)

	s = newScene(t, func(p *holdfastv1alpha1.BackupPlan) { p.Spec.Schedule = "0 0 31 2 *" })
	s.refresh()
	assert.Equal(t, "False InvalidSpec", s.reason("Ready"))
}

func TestOnlyTheOldestPlansAreServedWhereTheirNumberIsLimited(t *testing.T) {
	older := fake.BackupPlan("older")
	older.CreationTimestamp = metav1.NewTime(fake.PlanTime.Add(-time.Hour))
	s := newScene(t, nil, older)
	s.Policy.Plans = policy.Plans{MaxPerNamespace: 1}
	s.refresh()
	assert.Equal(t, "False ForbiddenByPolicy", s.reason("Ready"))
	assert.Contains(t, s.status().Conditions[0].Message, "older")
}

func TestARunThatTheAPIServerRefusesIsMissed(t *testing.T) {
	s := newScene(t, func(p *holdfastv1alpha1.BackupPlan) { p.Spec.Schedule = "1 12 * * *" })
	s.now = s.now.Add(time.Minute)
	require.NotZero(t, s.refresh().Due)
	quota := apierrors.NewForbidden(oadpv1alpha1.Resource(oadpv1alpha1.ResourceNonAdminBackups), "", errors.New("exceeded quota"))
	s.Fail(func(_ string, object client.Object) error {
		if _, is := object.(*oadpv1alpha1.NonAdminBackup); is {
			return quota
		}
		return nil
	})
	_, err := s.try(contract.RunPlan.Name, contract.PlanStep{})
	require.ErrorContains(t, err, "exceeded quota", "an API server that starts refuses everything")
	assert.Zero(t, s.status().Counts.Missed)
	s.now = s.now.Add(2 * time.Minute)
	view := s.act(contract.RunPlan.Name, contract.PlanStep{})
	assert.Zero(t, view.Due)
	assert.Equal(t, int64(1), s.status().Counts.Missed)
	var events []string
	for len(s.Events) > 0 {
		events = append(events, <-s.Events)
	}
	assert.Contains(t, strings.Join(events, "\n"), "RunRefused no backup was made as scheduled")
	assert.Contains(t, strings.Join(events, "\n"), "exceeded quota")
}

// Jitter is of the schedule: what is requested is refused after a minute, whatever it is.
func TestARequestedRunIsRefusedAfterAMinute(t *testing.T) {
	s := newScene(t, func(p *holdfastv1alpha1.BackupPlan) {
		p.Spec.Schedule, p.Spec.Jitter = "0 0 1 1 *", "24h"
		p.Annotations = map[string]string{holdfastv1alpha1.AnnotationRunNow: "1"}
	})
	require.True(t, s.refresh().RunNow)
	quota := apierrors.NewForbidden(oadpv1alpha1.Resource(oadpv1alpha1.ResourceNonAdminBackups), "", errors.New("exceeded quota"))
	s.Fail(func(_ string, object client.Object) error {
		if _, is := object.(*oadpv1alpha1.NonAdminBackup); is {
			return quota
		}
		return nil
	})
	requested := contract.PlanStep{Due: s.now.Unix()}
	_, err := s.try(contract.RunPlan.Name, requested)
	require.ErrorContains(t, err, "exceeded quota")
	s.now = s.now.Add(2 * time.Minute)
	assert.False(t, s.act(contract.RunPlan.Name, requested).RunNow)
	assert.Equal(t, "1", s.status().HandledRunNow)
}

// A restore brings the plan that is in the backup, with its request for a run, and its status if that was requested: then this plan
// continues that one, whose counts go on.
func TestARestoredPlanBeginsAnew(t *testing.T) {
	old := holdfastv1alpha1.BackupPlanStatus{
		UID: "uid-old", ObservedGeneration: 1, HandledRunNow: "1", Counts: holdfastv1alpha1.Counts{Good: 9},
		HandledDue: &metav1.Time{Time: fake.PlanTime.AddDate(0, -1, 0)}, LastGood: &holdfastv1alpha1.GoodRun{Name: "old"},
	}
	for title, status := range map[string]holdfastv1alpha1.BackupPlanStatus{"without a status": {}, "with one": old} {
		s := newScene(t, func(p *holdfastv1alpha1.BackupPlan) {
			p.Labels = map[string]string{velerov1.RestoreNameLabel: "again"}
			p.Annotations = map[string]string{holdfastv1alpha1.AnnotationRunNow: "2"}
			p.Status = status
		})
		view := s.refresh()
		assert.True(t, view.Ready, title)
		assert.False(t, view.RunNow, "%s: the request was for the plan in the backup", title)
		assert.Zero(t, view.Due, title)
		now := s.status()
		assert.Equal(t, "2", now.HandledRunNow, title)
		assert.EqualValues(t, "uid-"+minutely, now.UID, title)
		assert.Equal(t, status.Counts, now.Counts, title)
		assert.Equal(t, status.UID != "", slices.Contains(now.Continues, status.UID), title)
		assert.Nil(t, now.LastGood, title)

		writes := len(s.Writes())
		s.refresh()
		assert.Len(t, s.Writes(), writes, "%s: it begins anew once", title)
		plan := s.ReadPlan(minutely)
		plan.Annotations[holdfastv1alpha1.AnnotationRunNow] = "3"
		require.NoError(t, s.Client.Update(t.Context(), plan))
		assert.True(t, s.refresh().RunNow, "%s: this one is for it", title)
		assert.Len(t, s.runs(1), 1, title)
	}
}
