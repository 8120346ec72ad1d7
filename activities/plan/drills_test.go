package plan_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/fake"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

// newDrilled is the scene of a plan that has a good backup, and a drill every five minutes from now on.
func newDrilled(t *testing.T, alter func(*holdfastv1alpha1.BackupPlan)) (*scene, *oadpv1alpha1.NonAdminBackup) {
	t.Helper()
	s := newScene(t, func(p *holdfastv1alpha1.BackupPlan) {
		p.Spec.Schedule = "1 * * * *"
		p.Spec.Drill = &holdfastv1alpha1.PlanDrill{Schedule: "*/5 * * * *", Timeout: "10m", KeepOnFailure: "1m"}
		if alter != nil {
			alter(p)
		}
	})
	s.Policy.Drills.Enabled = true
	s.refresh()
	s.now = fake.PlanTime.Add(time.Minute)
	nab := s.run()
	s.ends(nab, velerov1.BackupPhaseCompleted)
	return s, s.Read(nab.Name)
}

// drillAt lets a minute of the hour come, and has the drill made that is due then.
func (s *scene) drillAt(minute int) *holdfastv1alpha1.RestoreDrill {
	s.t.Helper()
	s.at(minute)
	view := s.refresh()
	require.NotZero(s.t, view.DrillDue)
	assert.Zero(s.t, s.act(contract.MakePlanDrill.Name, contract.PlanStep{}).DrillDue, "it is made")
	return s.ReadDrill(contract.PlanRunName(minutely, time.Unix(view.DrillDue, 0)))
}

func (s *scene) at(minute int) {
	s.now = time.Date(2026, 8, 1, 12, minute, 0, 0, time.UTC)
}

// concludes ends a drill with a verdict.
func (s *scene) concludes(drill *holdfastv1alpha1.RestoreDrill, verified metav1.ConditionStatus) {
	s.t.Helper()
	now := metav1.NewTime(s.now)
	drill.Status.Phase, drill.Status.Concluded, drill.Status.Ended = holdfastv1alpha1.DrillEnded, &now, &now
	drill.Status.Conditions = []metav1.Condition{{
		Type: holdfastv1alpha1.ConditionVerified, Status: verified, Reason: "R" + string(verified), LastTransitionTime: now,
	}}
	require.NoError(s.t, s.Client.Status().Update(s.t.Context(), drill))
}

// verified writes on a backup what its drill has shown, as its workflow does.
func (s *scene) verified(nab *oadpv1alpha1.NonAdminBackup, status metav1.ConditionStatus) {
	s.t.Helper()
	nab = s.Read(nab.Name)
	nab.Status.LastDrill = &oadpv1alpha1.BackupDrill{Name: "d", Concluded: metav1.NewTime(s.now), RestoreSeconds: 7, ReadySeconds: 3}
	nab.Status.Conditions = []metav1.Condition{{
		Type: holdfastv1alpha1.ConditionVerified, Status: status, Reason: "R", LastTransitionTime: metav1.NewTime(s.now),
	}}
	require.NoError(s.t, s.Client.Status().Update(s.t.Context(), nab))
}

func (s *scene) events() string {
	var all []string
	for len(s.Events) > 0 {
		all = append(all, <-s.Events)
	}
	return strings.Join(all, "\n")
}

func TestADrillIsOfTheNewestGoodBackupAndGoesWithItsPlan(t *testing.T) {
	s, nab := newDrilled(t, nil)
	assert.Equal(t, "2026-08-01T12:05:00Z", s.status().Drills.Next.UTC().Format(time.RFC3339))
	assert.LessOrEqual(t, s.refresh().WakeIn, 4*time.Minute, "it wakes for its drill")
	drill := s.drillAt(5)
	require.NotNil(t, drill)
	assert.Equal(t, "minutely-20260801120500", drill.Name)
	assert.Equal(t, holdfastv1alpha1.RestoreDrillSpec{BackupName: nab.Name, Timeout: "10m", KeepOnFailure: "1m"}, drill.Spec)
	assert.Equal(t, minutely, drill.Labels[holdfastv1alpha1.LabelPlan])
	assert.Equal(t, "uid-minutely", drill.Annotations[holdfastv1alpha1.AnnotationPlanUID])
	require.Len(t, drill.OwnerReferences, 1)
	assert.Equal(t, metav1.OwnerReference{
		APIVersion: "holdfast.dev/v1alpha1", Kind: "BackupPlan", Name: minutely, UID: "uid-minutely",
	}, drill.OwnerReferences[0], "an owner that does not block would need another right")
	assert.Equal(t, int64(1), s.status().Drills.Made)
	assert.Contains(t, s.events(), "DrillCreated created RestoreDrill minutely-20260801120500 of NonAdminBackup "+nab.Name)
	assert.Zero(t, s.refresh().DrillDue, "once")
	s.concludes(drill, metav1.ConditionTrue)
	s.refresh()
	last := s.status().Drills.Last
	assert.Equal(t, "minutely-20260801120500 Ended RTrue "+nab.Name, fmt.Sprint(last.Name, " ", last.Phase, " ", last.Verified, " ", last.Backup))
}

func TestADrillThatIsDueWhileTheLastOneRunsIsSkippedAndSaid(t *testing.T) {
	s, _ := newDrilled(t, nil)
	drill := s.drillAt(5)
	s.at(10)
	assert.Zero(t, s.refresh().DrillDue)
	s.refresh()
	drills := s.status().Drills
	assert.Equal(t, int64(1), drills.Skipped, "once")
	assert.Equal(t, "the last drill is not over: RestoreDrill "+drill.Name, drills.LastSkipped.Why)
	assert.Contains(t, s.events(), "DrillSkipped a drill was due and not made: the last drill is not over: RestoreDrill "+drill.Name)
	s.concludes(drill, metav1.ConditionTrue)
	assert.Zero(t, s.refresh().DrillDue, "it is not made up")
	s.at(15)
	assert.NotZero(t, s.refresh().DrillDue)
}

func TestWhenAPlanMakesNoDrill(t *testing.T) {
	for title, test := range map[string]struct {
		alter   func(*holdfastv1alpha1.BackupPlan)
		skipped int64
		why     string
	}{
		"it is paused":          {func(p *holdfastv1alpha1.BackupPlan) { p.Spec.Paused = true }, 0, ""},
		"it has no good backup": {nil, 1, "the plan has no good backup"},
	} {
		s := newScene(t, func(p *holdfastv1alpha1.BackupPlan) {
			p.Spec.Schedule = "0 0 * * *"
			p.Spec.Drill = &holdfastv1alpha1.PlanDrill{Schedule: "*/5 * * * *"}
			if test.alter != nil {
				test.alter(p)
			}
		})
		s.Policy.Drills.Enabled = true
		s.refresh()
		s.at(5)
		assert.Zero(t, s.refresh().DrillDue, title)
		drills := s.status().Drills
		assert.Equal(t, test.skipped, drills.Skipped, title)
		assert.Zero(t, drills.Missed, title)
		if test.why != "" {
			assert.Equal(t, test.why, drills.LastSkipped.Why, title)
		}
	}
}

// Drills that a plan gets later, or by another schedule, are due from then on. Those that were missed are counted, but for the
// newest.
func TestWhichDrillsAreMissed(t *testing.T) {
	s, _ := newDrilled(t, nil)
	s.at(22)
	require.NotZero(t, s.refresh().DrillDue)
	s.act(contract.MakePlanDrill.Name, contract.PlanStep{})
	assert.NotNil(t, s.ReadDrill("minutely-20260801122000"))
	assert.Equal(t, int64(3), s.status().Drills.Missed)
	p := s.ReadPlan(minutely)
	p.Spec.Drill.Schedule = "* * * * *"
	require.NoError(t, s.Client.Update(t.Context(), p))
	s.at(40)
	assert.Zero(t, s.refresh().DrillDue)
	assert.Equal(t, int64(3), s.status().Drills.Missed)
}

// A worker may be killed at any moment: the same drill again finds its own.
func TestADrillThatIsRepeatedFindsItsOwn(t *testing.T) {
	s, _ := newDrilled(t, nil)
	s.at(5)
	s.Fail(func(_ string, object client.Object) error {
		if _, plan := object.(*holdfastv1alpha1.BackupPlan); plan {
			return errors.New("connection reset")
		}
		return nil
	})
	_, err := s.try(contract.MakePlanDrill.Name, contract.PlanStep{})
	require.Error(t, err, "made, and not shown")
	s.Fail(nil)
	require.NotZero(t, s.refresh().DrillDue)
	s.act(contract.MakePlanDrill.Name, contract.PlanStep{})
	s.act(contract.MakePlanDrill.Name, contract.PlanStep{})
	list := &holdfastv1alpha1.RestoreDrillList{}
	require.NoError(t, s.Client.List(t.Context(), list))
	assert.Len(t, list.Items, 1)
	assert.Equal(t, int64(1), s.status().Drills.Made)
}

func TestADrillThatTheAPIServerRefusesIsMissed(t *testing.T) {
	s, _ := newDrilled(t, nil)
	s.at(5)
	quota := apierrors.NewForbidden(holdfastv1alpha1.GroupVersion.WithResource("restoredrills").GroupResource(), "", errors.New("exceeded quota"))
	s.Fail(func(_ string, object client.Object) error {
		if _, drill := object.(*holdfastv1alpha1.RestoreDrill); drill {
			return quota
		}
		return nil
	})
	_, err := s.try(contract.MakePlanDrill.Name, contract.PlanStep{})
	require.ErrorContains(t, err, "exceeded quota", "an API server that starts refuses everything")
	s.at(7)
	assert.Zero(t, s.act(contract.MakePlanDrill.Name, contract.PlanStep{}).DrillDue)
	assert.Equal(t, int64(1), s.status().Drills.Missed)
	assert.Contains(t, s.events(), "DrillRefused no drill was made")
	assert.NotContains(t, s.events(), "DrillsMissed")

	s, _ = newDrilled(t, nil)
	require.NoError(t, s.Client.Create(t.Context(), fake.Drill("minutely-20260801120500", "own")), "a drill of the tenant's own")
	s.at(5)
	assert.Zero(t, s.act(contract.MakePlanDrill.Name, contract.PlanStep{}).DrillDue)
	assert.Equal(t, int64(1), s.status().Drills.Missed)
	assert.Equal(t, "own", s.ReadDrill("minutely-20260801120500").Spec.BackupName)
}

func TestAPlanKeepsItsNewestDrillsAndTheLastThatVerified(t *testing.T) {
	s, _ := newDrilled(t, nil)
	of := func(due string, phase holdfastv1alpha1.DrillPhase, verified metav1.ConditionStatus, uid string) {
		drill := fake.Drill(due, "b")
		drill.Labels = map[string]string{holdfastv1alpha1.LabelPlan: minutely}
		drill.Annotations = map[string]string{
			holdfastv1alpha1.AnnotationPlanUID: uid, holdfastv1alpha1.AnnotationDue: "2026-07-" + due + "T00:00:00Z",
		}
		drill.UID = types.UID(due)
		require.NoError(t, s.Client.Create(t.Context(), drill))
		s.concludes(drill, verified)
		drill.Status.Phase = phase
		require.NoError(t, s.Client.Status().Update(t.Context(), drill))
	}
	const mine = "uid-minutely"
	of("01", holdfastv1alpha1.DrillEnded, metav1.ConditionTrue, mine)
	of("02", holdfastv1alpha1.DrillEnded, metav1.ConditionTrue, mine) // the last that verified
	of("03", holdfastv1alpha1.DrillEnded, metav1.ConditionFalse, mine)
	of("04", holdfastv1alpha1.DrillKept, metav1.ConditionFalse, mine)
	of("05", holdfastv1alpha1.DrillEnded, metav1.ConditionUnknown, mine)
	of("06", holdfastv1alpha1.DrillEnded, metav1.ConditionFalse, mine)
	of("07", holdfastv1alpha1.DrillEnded, metav1.ConditionFalse, mine)
	of("00", holdfastv1alpha1.DrillEnded, metav1.ConditionFalse, "another plan's of that name")
	var gone []string
	view := s.refresh()
	for view.DeleteDrill != "" {
		gone = append(gone, view.DeleteDrill)
		view = s.act(contract.DeletePlanDrill.Name, contract.PlanStep{Drill: view.DeleteDrill})
	}
	assert.Equal(t, []string{"01", "03"}, gone)
	s.act(contract.DeletePlanDrill.Name, contract.PlanStep{Drill: "02"})
	assert.NotNil(t, s.ReadDrill("02"), "a step that comes late deletes nothing that stays")
	assert.Nil(t, s.ReadDrill("01"))
}

// The data of a backup that is being restored must not go.
func TestABackupThatADrillRestoresIsNotDeleted(t *testing.T) {
	s, nab := newDrilled(t, func(p *holdfastv1alpha1.BackupPlan) { p.Spec.Keep = &holdfastv1alpha1.Keep{Last: 1} })
	s.act(contract.RecordPlanBackups.Name, contract.PlanStep{})
	drill := s.drillAt(5)
	s.now = s.now.Add(time.Hour)
	s.ends(s.run(), velerov1.BackupPhaseCompleted)
	view := s.act(contract.RecordPlanBackups.Name, contract.PlanStep{})
	assert.Empty(t, view.Delete)
	assert.Equal(t, []holdfastv1alpha1.BackupReason{{Name: nab.Name, Why: "used by RestoreDrill " + drill.Name}}, s.status().Retention.Blocked)
	s.concludes(drill, metav1.ConditionFalse)
	assert.Equal(t, nab.Name, s.refresh().Delete)
}

func TestTheObjectiveOfVerifiedBackups(t *testing.T) {
	s, nab := newDrilled(t, func(p *holdfastv1alpha1.BackupPlan) {
		p.Spec.Objective = &holdfastv1alpha1.Objective{RecoveryPoint: "20h", Verified: "10m"}
	})
	s.refresh()
	assert.Equal(t, "Unknown Unknown", s.reason("ObjectiveMet"))
	s.at(11)
	s.refresh()
	assert.Equal(t, "False NeverVerified", s.reason("ObjectiveMet"))
	assert.Contains(t, s.events(), "NeverVerified the newest good backup is younger than 20h; "+
		"no drill has verified a backup, and the plan has had drills for more than 10m")

	s.verified(nab, metav1.ConditionTrue)
	view := s.refresh()
	assert.Equal(t, "True Met", s.reason("ObjectiveMet"))
	assert.Equal(t, time.Minute, view.WakeIn, "when it will be missed")
	last := s.status().LastVerified
	assert.Equal(t, fmt.Sprint(nab.Name, " 12:02:00 12:11:00 7 3"), fmt.Sprint(last.Name, last.Time.UTC().Format(" 15:04:05"),
		last.Verified.UTC().Format(" 15:04:05 "), last.RestoreSeconds, " ", last.ReadySeconds))

	s.at(12)
	s.refresh()
	assert.Equal(t, "False VerificationStale", s.reason("ObjectiveMet"))
	s.schedules.Operator = true
	s.refresh()
	assert.Equal(t, "Unknown Paused", s.reason("ObjectiveMet"))
}

// Who gives an old plan drills has not missed their objective.
func TestAnOldPlanHasTimeToVerifyABackup(t *testing.T) {
	s, _ := newDrilled(t, func(p *holdfastv1alpha1.BackupPlan) {
		p.Spec.Objective, p.Status.Drills = &holdfastv1alpha1.Objective{Verified: "10m"}, nil
	})
	s.at(60)
	p := s.ReadPlan(minutely)
	p.Status.Drills = nil
	require.NoError(t, s.Client.Status().Update(t.Context(), p))
	s.refresh()
	assert.Equal(t, "Unknown Unknown", s.reason("ObjectiveMet"))
	s.at(69)
	s.refresh()
	assert.Equal(t, "Unknown Unknown", s.reason("ObjectiveMet"))
	s.at(71)
	s.refresh()
	assert.Equal(t, "False NeverVerified", s.reason("ObjectiveMet"))
}

// An objective may be about verified backups alone.
func TestTheObjectiveOfVerifiedBackupsAlone(t *testing.T) {
	s, nab := newDrilled(t, func(p *holdfastv1alpha1.BackupPlan) {
		p.Spec.Objective = &holdfastv1alpha1.Objective{Verified: "10m"}
	})
	s.refresh()
	assert.Equal(t, "Unknown Unknown", s.reason("ObjectiveMet"))
	s.at(11)
	s.refresh()
	assert.Equal(t, "False NeverVerified", s.reason("ObjectiveMet"))
	assert.Contains(t, s.events(), "NeverVerified no drill has verified a backup, and the plan has had drills for more than 10m")
	s.verified(nab, metav1.ConditionTrue)
	assert.Equal(t, time.Minute, s.refresh().WakeIn)
	assert.Equal(t, "True Met", s.reason("ObjectiveMet"))
}

func TestWhatWasVerifiedStaysVerifiedUntilADrillFails(t *testing.T) {
	s, nab := newDrilled(t, nil)
	s.verified(nab, metav1.ConditionTrue)
	s.refresh()
	require.NotNil(t, s.status().LastVerified)
	s.at(3)
	s.verified(nab, metav1.ConditionTrue)
	s.refresh()
	assert.Equal(t, "12:03", s.status().LastVerified.Verified.UTC().Format("15:04"), "again")
	gone := s.Read(nab.Name)
	gone.Status.VeleroBackup.Status.Phase = velerov1.BackupPhaseDeleting
	require.NoError(t, s.Client.Status().Update(t.Context(), gone))
	s.refresh()
	assert.NotNil(t, s.status().LastVerified, "it is being deleted")
	s.verified(nab, metav1.ConditionFalse)
	s.refresh()
	assert.Nil(t, s.status().LastVerified, "it could not be restored again")

	s, nab = newDrilled(t, nil)
	s.verified(nab, metav1.ConditionTrue)
	s.refresh()
	require.NoError(t, s.Client.Delete(t.Context(), s.Read(nab.Name)))
	s.refresh()
	assert.Equal(t, nab.Name, s.status().LastVerified.Name, "it is gone")
}

// Without drills a plan reads none.
func TestAPlanWithoutDrillsReadsNone(t *testing.T) {
	s := newScene(t, nil)
	drill := fake.Drill("d", "b")
	drill.Labels = map[string]string{holdfastv1alpha1.LabelPlan: minutely}
	drill.Annotations = map[string]string{holdfastv1alpha1.AnnotationPlanUID: "uid-minutely"}
	require.NoError(t, s.Client.Create(t.Context(), drill))
	s.refresh()
	assert.Nil(t, s.status().Drills)
}
