package backup_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/activities/fake"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/workflowtest"
)

// ran counts the activities of a scenario by name, local ones too.
func ran(s *workflowtest.Scenario) map[string]int {
	ran := map[string]int{}
	s.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context, _ converter.EncodedValues) {
		ran[info.ActivityType.Name]++
	})
	s.SetOnLocalActivityStartedListener(func(info *activity.Info, _ context.Context, _ []any) {
		ran[info.ActivityType.Name]++
	})
	return ran
}

// What a backup costs at least: it is read twice, started the first time, and search attributes are written before the wait and at
// the end.
func TestAPlainBackupTakesFewSteps(t *testing.T) {
	s := workflowtest.NewScenario(t, fake.NAB(workflowtest.Backup))
	ran := ran(s)
	upserts := 0
	s.OnUpsertTypedSearchAttributes(mock.Anything).Run(func(mock.Arguments) { upserts++ }).Return(nil)
	s.After(time.Second, workflowtest.Velero("Completed"))
	runBackup(t, s)
	assert.Equal(t, map[string]int{contract.RefreshBackup.Name: 2}, ran)
	assert.Equal(t, 2, upserts)
}

// At every quarter of the stall timeout a backup that Velero works on is checked. A file counts from half of it on, so one of
// the two checks that are left may fail. A check that cannot be made harms nothing.
func TestABackupInProgressIsCheckedForAStall(t *testing.T) {
	s := workflowtest.NewScenario(t, fake.NAB(workflowtest.Backup))
	ran := ran(s)
	s.After(time.Second, workflowtest.Velero("InProgress"))
	s.After(16*time.Minute, workflowtest.Velero("Completed"))
	runBackup(t, s) // the world has no storage location, so every check fails
	assert.Equal(t, 4, ran[contract.CheckVeleroStall.Name], "after 3:45, 7:30, 11:15 and 15 minutes, once each")
	assert.Equal(t, velerov1.BackupPhaseCompleted, s.World.Read(workflowtest.Backup).Status.VeleroBackup.Status.Phase)
}

func TestABackupThatVeleroHasNotBegunIsNotChecked(t *testing.T) {
	s := workflowtest.NewScenario(t, fake.NAB(workflowtest.Backup))
	ran := ran(s)
	s.After(time.Second, workflowtest.Velero("Queued"))
	s.After(16*time.Minute, workflowtest.Velero("Completed"))
	runBackup(t, s)
	assert.Zero(t, ran[contract.CheckVeleroStall.Name])
}

// A person may send the signal from the Web UI with anything in it, or nothing.
func TestASignalThatCannotBeReadIsASignal(t *testing.T) {
	for title, payload := range map[string]any{"of another type": []int{1}, "nothing": nil} {
		t.Run(title, func(t *testing.T) {
			s := workflowtest.NewScenario(t, fake.NAB(workflowtest.Backup))
			begin := s.Now()
			s.RegisterDelayedCallback(func() {
				workflowtest.Velero("Completed")(s.World)
				s.SignalWorkflow(contract.SignalChanged, payload)
			}, time.Second)
			runBackup(t, s)
			assert.Less(t, s.Now().Sub(begin), time.Minute, "not only at the re-read")
		})
	}
}

// Who says once that a backup has volumes is believed from then on, also after continue-as-new.
func TestVolumesAreCountedOnceSomebodyHasSeenOne(t *testing.T) {
	steps := func(s *workflowtest.Scenario) *[]bool {
		var volumes []bool
		s.SetOnLocalActivityStartedListener(func(info *activity.Info, _ context.Context, args []any) {
			if info.ActivityType.Name == contract.RefreshBackup.Name {
				volumes = append(volumes, args[0].(contract.BackupStep).Volumes)
			}
		})
		return &volumes
	}
	s := workflowtest.NewScenario(t, fake.NAB(workflowtest.Backup))
	seen := steps(s)
	s.RegisterDelayedCallback(func() { s.SignalWorkflow(contract.SignalChanged, contract.VeleroChanged{Volumes: true}) }, time.Second)
	s.After(2*time.Second, workflowtest.Velero("Completed"))
	runBackup(t, s)
	require.Equal(t, []bool{false, true, true}, *seen)
}

// A drill that has its verdict starts the workflow of a settled backup once more, which reads that drill, and no other, once.
func TestTheVerdictOfADrillIsShownOnce(t *testing.T) {
	drill := fake.Drill("weekly", workflowtest.Backup)
	now := metav1.Now()
	drill.Status = holdfastv1alpha1.RestoreDrillStatus{
		Concluded: &now, Backup: workflowtest.Backup, BackupUID: fake.NAB(workflowtest.Backup).UID,
		Conditions: []metav1.Condition{{Type: holdfastv1alpha1.ConditionVerified, Status: metav1.ConditionTrue, Reason: "Verified"}},
	}
	s := workflowtest.NewScenario(t, fake.NAB(workflowtest.Backup), drill)
	var drills []string
	s.SetOnLocalActivityStartedListener(func(info *activity.Info, _ context.Context, args []any) {
		drills = append(drills, info.ActivityType.Name+" "+args[0].(contract.BackupStep).Drill)
	})
	s.RegisterDelayedCallback(func() { s.SignalWorkflow(contract.SignalChanged, contract.VeleroChanged{Drill: "weekly"}) }, time.Second)
	s.RegisterDelayedCallback(func() { s.SignalWorkflow(contract.SignalChanged, contract.VeleroChanged{}) }, 2*time.Second)
	s.After(3*time.Second, workflowtest.Velero("Completed"))
	runBackup(t, s)
	require.Equal(t, []string{"refresh-backup ", "refresh-backup weekly", "refresh-backup ", "refresh-backup "}, drills)
	require.True(t, meta.IsStatusConditionTrue(s.World.Read(workflowtest.Backup).Status.Conditions, "Verified"))
}

// While drills are off a backup takes no more steps than that: TestAPlainBackupTakesFewSteps.
func TestDigestsAreRecordedWhileDrillsAreOn(t *testing.T) {
	s := workflowtest.NewScenario(t, fake.NAB(workflowtest.Backup), fake.VeleroLocation(fake.AdminLocation, ""))
	s.World.Policy.Drills.Enabled = true
	s.World.Digests(t.TempDir(), nil).Register(s)
	ran := ran(s)
	s.After(time.Second, func(w *fake.World) {
		made := w.Velero(fake.VeleroName(workflowtest.Backup))
		made.Spec.StorageLocation = fake.AdminLocation
		require.NoError(t, w.Client.Update(t.Context(), made))
		workflowtest.Velero("Completed")(w)
	})
	runBackup(t, s)
	assert.Equal(t, map[string]int{contract.RefreshBackup.Name: 3, contract.RecordDigests.Name: 1}, ran)
	made := s.World.Velero(fake.VeleroName(workflowtest.Backup))
	assert.Contains(t, made.Annotations[holdfastv1alpha1.AnnotationDigests], "not recorded: read backups/", "the world has no archive")
}

// What the API server refuses for good is tried again, but not at once: each attempt reads a whole archive.
func TestDigestsThatCannotBeKeptAreRecordedLater(t *testing.T) {
	s := workflowtest.NewScenario(t, fake.NAB(workflowtest.Backup))
	s.World.Policy.Drills.Enabled = true
	attempts, begin := 0, s.Now()
	s.RegisterActivityWithOptions(func(context.Context, contract.BackupStep) error {
		if attempts++; attempts < 3 {
			return workflowtest.ErrKilled
		}
		made := s.World.Velero(fake.VeleroName(workflowtest.Backup))
		made.Annotations[holdfastv1alpha1.AnnotationDigests] = holdfastv1alpha1.DigestsRecorded
		return s.World.Client.Update(t.Context(), made)
	}, activity.RegisterOptions{Name: contract.RecordDigests.Name})
	s.After(time.Second, workflowtest.Velero("Completed"))
	runBackup(t, s)
	assert.Equal(t, 3, attempts)
	assert.GreaterOrEqual(t, s.Now().Sub(begin), 30*time.Minute)
}

// An archive in a bucket that does not answer delays nothing: the backup is served meanwhile, and its deletion ends the reading.
func TestNothingWaitsForDigests(t *testing.T) {
	s := workflowtest.NewScenario(t, fake.NAB(workflowtest.Backup))
	s.World.Policy.Drills.Enabled = true
	over := make(chan struct{})
	s.RegisterActivityWithOptions(func(context.Context, contract.BackupStep) error {
		<-over
		return nil
	}, activity.RegisterOptions{Name: contract.RecordDigests.Name})
	var cancelled []string
	s.SetOnActivityCanceledListener(func(info *activity.Info) { cancelled = append(cancelled, info.ActivityType.Name) })
	s.After(time.Second, workflowtest.Velero("Completed"))
	s.After(2*time.Second, edit(deleteBackup))
	s.After(3*time.Second, func(w *fake.World) {
		assert.Len(t, w.Requests(), 1, "the deletion was requested of Velero")
		w.AnswerRequests("")
		close(over)
	})
	runBackup(t, s)
	assert.Nil(t, s.World.Read(workflowtest.Backup))
	assert.Equal(t, []string{contract.RecordDigests.Name}, cancelled)
}
