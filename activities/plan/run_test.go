package plan_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/activities/fake"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/lifecycle"
	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/workflows/contract"
)

// A pass over a plan that has nothing to do writes nothing, however rare its runs are.
func TestAPassWithoutNewsWritesNothing(t *testing.T) {
	s := newScene(t, func(p *holdfastv1alpha1.BackupPlan) {
		p.Spec.Schedule, p.Spec.Keep = "0 0 1 1 *", &holdfastv1alpha1.Keep{Last: 1}
	})
	s.refresh()
	before := s.ReadPlan(minutely).ResourceVersion
	for range 50 {
		s.now = s.now.Add(24 * time.Hour)
		s.refresh()
	}
	assert.Equal(t, before, s.ReadPlan(minutely).ResourceVersion)
}

func TestAPlanWhoseTemplateCannotBeReadIsNotReady(t *testing.T) {
	s := newScene(t, func(p *holdfastv1alpha1.BackupPlan) {
		p.Spec.Template.Spec.BackupSpec, p.Spec.Keep = nil, &holdfastv1alpha1.Keep{Last: 1}
	})
	view := s.refresh()
	assert.False(t, view.Ready)
	assert.Contains(t, view.Why, "template.spec.backupSpec cannot be read")

	s = newScene(t, func(p *holdfastv1alpha1.BackupPlan) {
		p.Spec.Template.Spec.BackupSpec.TTL = metav1.Duration{Duration: -time.Hour}
	})
	assert.Contains(t, s.refresh().Why, "template.spec.backupSpec.ttl must not be negative: -1h0m0s")
	assert.False(t, s.act(contract.RunPlan.Name, contract.PlanStep{}).Ready)
}

func TestRunsMayBeMadeBesideEachOther(t *testing.T) {
	s := newScene(t, func(p *holdfastv1alpha1.BackupPlan) { p.Spec.ConcurrencyPolicy = holdfastv1alpha1.ConcurrencyAllow })
	for range 3 {
		s.now = s.now.Add(time.Minute)
		s.run()
	}
	assert.Zero(t, s.status().Counts.Skipped)
	assert.Len(t, s.status().Recent, 3)
}

// A name is taken if the object of that name is not what the plan would have made, whatever it says.
func TestARunWhoseNameIsTakenIsMissed(t *testing.T) {
	s := newScene(t, nil)
	s.now = s.now.Add(time.Minute)
	due := time.Unix(s.refresh().Due, 0)
	prepared := fake.NAB(contract.PlanRunName(minutely, due))
	prepared.Labels = map[string]string{holdfastv1alpha1.LabelPlan: minutely}
	prepared.Annotations = map[string]string{
		holdfastv1alpha1.AnnotationPlanUID: "uid-" + minutely, holdfastv1alpha1.AnnotationDue: due.UTC().Format(time.RFC3339),
	}
	prepared.Spec.BackupSpec = &velerov1.BackupSpec{IncludedResources: []string{"nothing"}}
	require.NoError(t, s.Client.Create(t.Context(), prepared))
	view := s.act(contract.RunPlan.Name, contract.PlanStep{})
	assert.Nil(t, view.MadeNow)
	assert.Equal(t, int64(1), s.status().Counts.Missed)
	assert.Nil(t, s.refresh().MadeNow, "nor is it found later")
}

// What refuses a run may pass: it has failed until then, and no longer if it completes.
func TestARunThatBacksOffIsCountedOnce(t *testing.T) {
	s := newScene(t, nil)
	s.now = s.now.Add(time.Minute)
	nab := s.run()
	nab.Status.Phase = oadpv1alpha1.NonAdminPhaseBackingOff
	require.NoError(t, s.Client.Status().Update(t.Context(), nab))
	s.refresh()
	assert.Equal(t, int64(1), s.status().Counts.Failed)
	s.ends(s.Read(nab.Name), velerov1.BackupPhaseCompleted)
	s.refresh()
	counts := s.status().Counts
	assert.Zero(t, counts.Failed)
	assert.Equal(t, int64(1), counts.Good)
	assert.Zero(t, s.status().Days[0].Failed)
}

// A run that waits for its turn before Velero after a refusal has not failed: the plan makes no second one behind it.
func TestARunThatWaitsForItsTurnAfterARefusalIsWaitedFor(t *testing.T) {
	s := newScene(t, nil)
	s.now = s.now.Add(time.Minute)
	nab := s.run()
	nab.Status.Phase = oadpv1alpha1.NonAdminPhaseBackingOff
	lifecycle.ApplyVerdict(nab, check.Verdict{Accepted: true, Reason: oadpv1alpha1.ReasonBackupAccepted}, "made-later", fake.OADPNamespace)
	lifecycle.ApplyWaiting(nab)
	require.NoError(t, s.Client.Status().Update(t.Context(), nab))
	s.now = s.now.Add(12 * time.Hour)
	assert.Zero(t, s.refresh().Due)
	assert.Zero(t, s.status().Counts.Failed)
	assert.Equal(t, "New", s.status().LastRun.Phase)
}

// A good run counts, also while Velero deletes it, and when it is gone.
func TestARunThatIsDeletedHasBeenGood(t *testing.T) {
	s := newScene(t, nil)
	s.now = s.now.Add(time.Minute)
	nab := s.run()
	s.ends(nab, velerov1.BackupPhaseCompleted)
	s.refresh()
	for _, phase := range []velerov1.BackupPhase{
		velerov1.BackupPhaseDeleting, velerov1.BackupPhaseCompleted /* it cannot be deleted */, velerov1.BackupPhaseDeleting,
	} {
		nab = s.Read(nab.Name)
		nab.Status.VeleroBackup.Status.Phase = phase
		require.NoError(t, s.Client.Status().Update(t.Context(), nab))
		s.refresh()
		assert.Equal(t, int64(1), s.status().Counts.Good, phase)
		assert.Equal(t, int64(1), s.status().Days[0].Good, phase)
		assert.Equal(t, "Completed", s.status().Recent[0].Phase, phase)
	}
	require.NoError(t, s.Client.Delete(t.Context(), nab))
	s.refresh()
	assert.Equal(t, int64(1), s.status().Counts.Good)
	assert.Equal(t, holdfastv1alpha1.PhaseDeleted, s.status().Recent[0].Phase)
}

// A plan that was not ready for weeks makes up what its deadline allows, and a worker whose clock was ahead holds up nothing.
func TestWhatWasNotHandled(t *testing.T) {
	s := newScene(t, func(p *holdfastv1alpha1.BackupPlan) { p.Spec.TimeZone = "Nowhere/Never" })
	assert.NotEmpty(t, s.refresh().Why)
	s.now = s.now.Add(30 * 24 * time.Hour)
	plan := s.ReadPlan(minutely)
	plan.Spec.TimeZone = ""
	require.NoError(t, s.Client.Update(t.Context(), plan))
	s.refresh()
	assert.Zero(t, s.status().Counts.Missed)

	s.now = s.now.Add(time.Minute)
	ahead := s.ReadPlan(minutely)
	ahead.Status.HandledDue = &metav1.Time{Time: s.now.Add(365 * 24 * time.Hour)}
	require.NoError(t, s.Client.Status().Update(t.Context(), ahead))
	s.refresh()
	s.now = s.now.Add(time.Minute)
	assert.NotZero(t, s.refresh().Due)
}

// A run that a quota holds back is unfinished, and named so: the plan makes no second one behind it, counts no failure, deletes
// nothing, and goes on when there is a place.
func TestARunThatAQuotaHoldsBackIsWaitedFor(t *testing.T) {
	s := newScene(t, func(p *holdfastv1alpha1.BackupPlan) { p.Spec.Keep = &holdfastv1alpha1.Keep{Last: 1} })
	s.now = s.now.Add(time.Minute)
	nab := s.run()
	lifecycle.ApplyVerdict(nab, check.Verdict{Reason: oadpv1alpha1.ReasonQuotaExceeded, Message: "full"}, "", "")
	require.NoError(t, s.Client.Status().Update(t.Context(), nab))
	for range 3 {
		s.now = s.now.Add(12 * time.Hour)
		view := s.refresh()
		assert.Zero(t, view.Due)
		assert.Empty(t, view.Delete)
	}
	assert.Equal(t, "QuotaExceeded", s.status().Recent[0].Phase)
	assert.Equal(t, "QuotaExceeded", s.status().LastRun.Phase)
	assert.Zero(t, s.status().Counts.Failed)
	skipped := s.status().Counts.Skipped
	assert.NotZero(t, skipped)

	s.ends(nab, velerov1.BackupPhaseCompleted)
	nab = s.Read(nab.Name)
	lifecycle.ApplyVerdict(nab, check.Verdict{Accepted: true, Reason: oadpv1alpha1.ReasonBackupAccepted}, nab.Status.VeleroBackup.Name, fake.OADPNamespace)
	require.NoError(t, s.Client.Status().Update(t.Context(), nab))
	s.now = s.now.Add(time.Minute)
	assert.NotZero(t, s.refresh().Due)
	assert.Equal(t, int64(1), s.status().Counts.Good)
	assert.Equal(t, skipped, s.status().Counts.Skipped)
}
