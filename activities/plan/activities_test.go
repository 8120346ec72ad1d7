package plan_test

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/activitytest"
	"holdfast.dev/holdfast/activities/fake"
	"holdfast.dev/holdfast/activities/plan"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/workflows/contract"
)

const minutely = "minutely"

// scene is one plan, at a time.
type scene struct {
	*fake.World
	t         *testing.T
	schedules schedules
	now       time.Time
	made      []contract.PlanBackup
	// items and volumes are what Velero counts of the next backups; it counts nothing if there are no items.
	items, volumes int
}

func newScene(t *testing.T, alter func(*holdfastv1alpha1.BackupPlan), objects ...client.Object) *scene {
	t.Helper()
	plan := fake.BackupPlan(minutely)
	if alter != nil {
		alter(plan)
	}
	return &scene{World: fake.New(t, append(objects, plan)...), t: t, now: fake.PlanTime}
}

// try runs an activity of plans under its wire name.
func (s *scene) try(activity string, step contract.PlanStep) (contract.PlanView, error) {
	s.t.Helper()
	step.Cluster, step.Ref, step.Made = fake.Cluster, fake.Ref(minutely), s.made
	plans := &plan.Activities{
		Cluster: s.Backups.Cluster,
		Gatherer: &plan.Gatherer{
			Reader: s.Client, Policy: s.Backups.Gatherer.Policy, ClusterID: fake.Cluster, OADPNamespace: fake.OADPNamespace,
		},
		Schedules: &s.schedules, Now: func() time.Time { return s.now },
	}
	return activitytest.Performed[contract.PlanView](s.t, plans, activity, step)
}

func (s *scene) act(activity string, step contract.PlanStep) contract.PlanView {
	s.t.Helper()
	view, err := s.try(activity, step)
	require.NoError(s.t, err)
	if view.MadeNow != nil && !slices.Contains(s.made, *view.MadeNow) {
		s.made = append(s.made, *view.MadeNow)
	}
	return view
}

func (s *scene) refresh() contract.PlanView {
	s.t.Helper()
	return s.act(contract.RefreshPlan.Name, contract.PlanStep{})
}

// run makes the run that is due, and gives its NonAdminBackup a UID, as the API server does.
func (s *scene) run() *oadpv1alpha1.NonAdminBackup {
	s.t.Helper()
	view := s.refresh()
	require.NotZero(s.t, view.Due)
	s.act(contract.RunPlan.Name, contract.PlanStep{})
	return s.Read(contract.PlanRunName(minutely, time.Unix(view.Due, 0)))
}

// ends gives a NonAdminBackup its Velero Backup, which has ended.
func (s *scene) ends(nab *oadpv1alpha1.NonAdminBackup, phase velerov1.BackupPhase) {
	s.t.Helper()
	begin, expires := metav1.NewTime(s.now), metav1.NewTime(s.now.Add(cmp.Or(nab.Spec.BackupSpec.TTL.Duration, 720*time.Hour)))
	name := owner.NACUUID(fake.Cluster, nab.Namespace, nab.Name, string(nab.UID))
	made := &velerov1.Backup{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: fake.OADPNamespace, Name: name,
			Labels:      map[string]string{oadpv1alpha1.OadpLabel: oadpv1alpha1.OadpLabelValue, oadpv1alpha1.NabOriginNACUUIDLabel: name},
			Annotations: map[string]string{oadpv1alpha1.NabOriginNamespaceAnnotation: nab.Namespace, oadpv1alpha1.NabOriginNameAnnotation: nab.Name},
		},
		Status: velerov1.BackupStatus{Phase: phase, StartTimestamp: &begin, Expiration: &expires},
	}
	if s.items > 0 {
		made.Status.Progress = &velerov1.BackupProgress{TotalItems: s.items, ItemsBackedUp: s.items}
		made.Status.CSIVolumeSnapshotsCompleted = s.volumes
	}
	require.NoError(s.t, s.Client.Create(s.t.Context(), made))
	nab = s.Read(nab.Name)
	nab.Status.Phase = oadpv1alpha1.NonAdminPhaseCreated
	nab.Status.VeleroBackup = &oadpv1alpha1.VeleroBackup{NACUUID: name, Name: name, Namespace: fake.OADPNamespace, Spec: &made.Spec, Status: &made.Status}
	require.NoError(s.t, s.Client.Status().Update(s.t.Context(), nab))
}

// runs has so many runs complete, a minute after each other, and returns their names.
func (s *scene) runs(n int) (names []string) {
	s.t.Helper()
	for range n {
		s.now = s.now.Add(time.Minute)
		nab := s.run()
		s.ends(nab, velerov1.BackupPhaseCompleted)
		names = append(names, nab.Name)
	}
	return names
}

func (s *scene) status() *holdfastv1alpha1.BackupPlanStatus { return &s.ReadPlan(minutely).Status }

func (s *scene) reason(kind string) string {
	s.t.Helper()
	condition := meta.FindStatusCondition(s.status().Conditions, kind)
	require.NotNil(s.t, condition, kind)
	return string(condition.Status) + " " + condition.Reason
}

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

// A restore brings the plan that is in the backup, with its request for a run, and its status if that was requested.
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
		assert.Zero(t, now.Counts, title)
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

func TestAPlanThatIsGoneHasNoSchedule(t *testing.T) {
	s := newScene(t, nil)
	s.refresh()
	require.NotEmpty(t, s.schedules.Wanted)
	require.NoError(t, s.Client.Delete(t.Context(), s.ReadPlan(minutely)))
	assert.False(t, s.refresh().Found)
	assert.Empty(t, s.schedules.Wanted)
}

// Reading a Schedule costs Temporal a workflow task: it is read only if it may not be as the workflow knows it.
func TestAScheduleThatIsKnownIsNotReadAgain(t *testing.T) {
	s := newScene(t, nil)
	known := s.refresh().Schedule
	require.NotNil(t, known)
	require.Equal(t, 1, s.schedules.Kept)
	step := contract.PlanStep{Schedule: known}
	assert.Equal(t, known, s.act(contract.RefreshPlan.Name, step).Schedule)
	s.now = fake.PlanTime.Add(20 * time.Minute)
	assert.Equal(t, known, s.act(contract.RefreshPlan.Name, step).Schedule, "enough of its times are left")
	require.Equal(t, 1, s.schedules.Kept)

	s.now = fake.PlanTime.Add(25 * time.Minute)
	assert.Greater(t, s.act(contract.RefreshPlan.Name, step).Schedule.Last, known.Last)
	require.Equal(t, 2, s.schedules.Kept, "few are left")
	for title, other := range map[string]contract.PlanSchedule{
		"of another generation": {Generation: known.Generation + 1, Last: known.Last + 3600},
		"of a refused plan":     {Generation: known.Generation, Last: known.Last + 3600, Refused: true},
	} {
		before := s.schedules.Kept
		s.act(contract.RefreshPlan.Name, contract.PlanStep{Schedule: &other})
		assert.Equal(t, before+1, s.schedules.Kept, title)
	}
	doubted := contract.PlanSchedule{Generation: known.Generation, Last: known.Last + 3600, Doubted: true}
	before := s.schedules.Kept
	assert.False(t, s.act(contract.RefreshPlan.Name, contract.PlanStep{Schedule: &doubted}).Schedule.Doubted)
	assert.Equal(t, before, s.schedules.Kept, "it is listed as it was")
	s.schedules.Operator = true
	assert.Equal(t, "Operator", s.act(contract.RefreshPlan.Name, contract.PlanStep{Schedule: &doubted}).Paused, "a pause that no review has found")
	s.schedules.Operator = false
	delete(s.schedules.Wanted, minutely)
	s.act(contract.RefreshPlan.Name, contract.PlanStep{Schedule: &doubted})
	assert.Contains(t, s.schedules.Wanted, minutely, "it was deleted")
	paused := contract.PlanSchedule{Generation: known.Generation, Last: known.Last + 3600, PausedByOperator: true}
	assert.Equal(t, "Operator", s.act(contract.RefreshPlan.Name, contract.PlanStep{Schedule: &paused}).Paused)
}
