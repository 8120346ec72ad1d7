package plan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"holdfast.dev/holdfast/activities/fake"
	"holdfast.dev/holdfast/k8s"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/workflows/contract"
)

func TestRetentionDeletesOnlyWhatTheRecordSaysThePlanHasMade(t *testing.T) {
	s := newScene(t, func(p *holdfastv1alpha1.BackupPlan) {
		p.Spec.Keep = &holdfastv1alpha1.Keep{Last: 1, MinGood: new(int32(1)), Failed: new(int32(0))}
	})
	names := s.runs(2)
	forged := s.Read(names[0])
	forged.ObjectMeta = metav1.ObjectMeta{
		Namespace: forged.Namespace, Name: "forged", UID: types.UID("uid-forged"), Labels: forged.Labels, Annotations: forged.Annotations,
	}
	require.NoError(t, s.Client.Create(t.Context(), forged))

	view := s.act(contract.RecordPlanBackups.Name, contract.PlanStep{})
	assert.Len(t, view.Recorded, 2)
	s.made = nil // the workflow was lost; the record is not

	view = s.refresh()
	assert.Equal(t, names[0], view.Delete)
	status := s.status().Retention
	assert.Equal(t, []holdfastv1alpha1.Kept{{Name: names[1], By: "last, minGood"}}, status.Kept)
	assert.Equal(t, []holdfastv1alpha1.BackupReason{{Name: names[0], Why: "no rule of keep names it"}}, status.Due, "before it goes")
	assert.Equal(t, []holdfastv1alpha1.BackupReason{{Name: "forged", Why: "no record says that this plan has made it"}}, status.Blocked)
	s.act(contract.DeletePlanBackup.Name, contract.PlanStep{Backup: "forged"})
	assert.False(t, s.Read("forged").Spec.DeleteBackup)
	view = s.act(contract.DeletePlanBackup.Name, contract.PlanStep{Backup: names[0]})
	assert.True(t, s.Read(names[0]).Spec.DeleteBackup)
	assert.False(t, s.Read(names[1]).Spec.DeleteBackup)
	assert.Empty(t, view.Delete, "one at a time")
}

// A Velero Backup of somebody else's is no record, whatever it says, and neither is one whose origin is another object.
func TestARecordCountsOnlyOnTheVeleroBackupOfTheObject(t *testing.T) {
	s := newScene(t, func(p *holdfastv1alpha1.BackupPlan) {
		p.Spec.Keep = &holdfastv1alpha1.Keep{Failed: new(int32(0)), Last: 1}
	})
	victim := fake.NAB("victim")
	victim.Labels = map[string]string{holdfastv1alpha1.LabelPlan: minutely}
	victim.Annotations = map[string]string{holdfastv1alpha1.AnnotationPlanUID: "uid-" + minutely}
	require.NoError(t, s.Client.Create(t.Context(), victim))
	other := &velerov1.Backup{ObjectMeta: metav1.ObjectMeta{
		Namespace: fake.OADPNamespace, Name: fake.VeleroName("victim"),
		Labels:      map[string]string{holdfastv1alpha1.LabelRecordedPlan: "uid-" + minutely},
		Annotations: map[string]string{oadpv1alpha1.NabOriginNamespaceAnnotation: "other", oadpv1alpha1.NabOriginNameAnnotation: "victim"},
	}}
	require.NoError(t, s.Client.Create(t.Context(), other))
	s.refresh()
	assert.Equal(t, "no record says that this plan has made it", s.status().Retention.Blocked[0].Why)
}

func TestABackupThatIsUsedIsNotDeleted(t *testing.T) {
	s := newScene(t, func(p *holdfastv1alpha1.BackupPlan) { p.Spec.Keep = &holdfastv1alpha1.Keep{Last: 1} })
	first := s.runs(2)[0]
	require.NoError(t, s.Client.Create(t.Context(), fake.NAR("restore", first)))
	assert.Empty(t, s.refresh().Delete)
	assert.Equal(t, []holdfastv1alpha1.BackupReason{{Name: first, Why: "used by NonAdminRestore restore"}}, s.status().Retention.Blocked)
}

func TestUntilWhenARestoreReadsItsBackup(t *testing.T) {
	for phase, reads := range map[velerov1.RestorePhase]bool{
		"InProgress": true, "Cancelling": true, "OfTomorrow": true, "Completed": true, // until it is finalized
		"Failed": false, "FailedValidation": false, "Cancelled": false, "Canceled": false,
	} {
		t.Run(string(phase), func(t *testing.T) {
			s := newScene(t, func(p *holdfastv1alpha1.BackupPlan) { p.Spec.Keep = &holdfastv1alpha1.Keep{Last: 1} })
			var names []string
			for range 2 {
				s.now = s.now.Add(time.Minute)
				nab := s.run()
				s.ends(nab, velerov1.BackupPhaseCompleted)
				names = append(names, nab.Name)
			}
			nar := fake.NAR("restore", names[0])
			nar.Status.VeleroRestore = &oadpv1alpha1.VeleroRestore{Status: &velerov1.RestoreStatus{Phase: phase}}
			require.NoError(t, s.Client.Create(t.Context(), nar))
			require.NoError(t, s.Client.Status().Update(t.Context(), nar))
			assert.Equal(t, !reads, s.refresh().Delete == names[0])
		})
	}
}

// A location that became read-only, for example, keeps one backup, and nothing else (velero#3701, #4203).
func TestABackupThatVeleroCannotDeleteKeepsNoOther(t *testing.T) {
	s := newScene(t, func(p *holdfastv1alpha1.BackupPlan) { p.Spec.Keep = &holdfastv1alpha1.Keep{Last: 1} })
	names := s.runs(3)
	require.Equal(t, names[0], s.refresh().Delete)
	s.act(contract.DeletePlanBackup.Name, contract.PlanStep{Backup: names[0]})
	assert.Empty(t, s.refresh().Delete, "Velero is at it")

	stuck := s.Read(names[0])
	answer := func(attempt int, errors ...string) {
		stuck.Status.VeleroDeleteBackupRequest = &oadpv1alpha1.VeleroDeleteBackupRequest{
			Name:   fmt.Sprintf("%s-%d", stuck.Status.VeleroBackup.Name, attempt),
			Status: &velerov1.DeleteBackupRequestStatus{Errors: errors},
		}
		require.NoError(t, s.Client.Status().Update(t.Context(), stuck))
	}
	answer(1)
	assert.Empty(t, s.refresh().Delete, "Velero is at it")
	answer(1, "the location is in read-only mode")
	assert.Empty(t, s.refresh().Delete, "Velero is asked again in seconds")
	answer(2)
	assert.Equal(t, names[1], s.refresh().Delete)
	assert.Contains(t, s.status().Retention.Blocked[0].Why, "the request is repeated")
	answer(2, "the location is in read-only mode")
	s.refresh()
	before := s.status().Retention
	assert.Equal(t, []holdfastv1alpha1.BackupReason{
		{Name: names[0], Why: "Velero cannot delete it: the location is in read-only mode"},
	}, before.Blocked)
	assert.Equal(t, names[0], before.OldestPending)
	s.now = s.now.Add(time.Minute)
	answer(3)
	assert.Equal(t, names[1], s.refresh().Delete, "while the next request is under way, too")
	assert.Equal(t, before.PendingSince, s.status().Retention.PendingSince, "the alert counts from here")
	assert.Equal(t, before.Blocked, s.status().Retention.Blocked)
}

func TestWhatRetentionLeavesAlone(t *testing.T) {
	s := newScene(t, func(p *holdfastv1alpha1.BackupPlan) { p.Spec.Keep = &holdfastv1alpha1.Keep{Last: 1} })
	names := s.runs(4)
	held := s.Read(names[0])
	held.Labels[holdfastv1alpha1.LabelHold] = holdfastv1alpha1.LabelHoldValue
	require.NoError(t, s.Client.Update(t.Context(), held))
	require.NoError(t, s.Client.Create(t.Context(), fake.NADR("log", velerov1.DownloadTargetKindBackupLog, names[1])))
	assert.Equal(t, names[2], s.refresh().Delete)
	retention := s.status().Retention
	assert.Equal(t, []holdfastv1alpha1.BackupReason{{Name: names[1], Why: "used by NonAdminDownloadRequest log"}}, retention.Blocked)
	assert.Contains(t, retention.Kept, holdfastv1alpha1.Kept{Name: names[0], By: "hold"})

	dry := s.ReadPlan(minutely)
	dry.Spec.Keep.DryRun = true
	require.NoError(t, s.Client.Update(t.Context(), dry))
	assert.Empty(t, s.refresh().Delete)
	assert.Len(t, s.status().Retention.Due, 1, "it is shown")
	assert.Nil(t, s.status().Retention.PendingSince, "nothing waits")
	s.act(contract.DeletePlanBackup.Name, contract.PlanStep{Backup: names[2]})
	assert.False(t, s.Read(names[2]).Spec.DeleteBackup)
}

func TestWhatOnlyMinGoodKeepsDoesNotExpire(t *testing.T) {
	s := newScene(t, func(p *holdfastv1alpha1.BackupPlan) { p.Spec.Keep = &holdfastv1alpha1.Keep{} })
	s.now = s.now.Add(time.Minute)
	nab := s.run()
	s.ends(nab, velerov1.BackupPhaseCompleted)
	s.refresh()
	s.act(contract.RecordPlanBackups.Name, contract.PlanStep{})
	view := s.refresh()
	assert.Empty(t, view.Extend)
	assert.LessOrEqual(t, view.WakeIn, 720*time.Hour-7*24*time.Hour, "it wakes in time")
	s.now = s.now.Add(720*time.Hour - 7*24*time.Hour)
	require.Equal(t, nab.Name, s.refresh().Extend)
	s.act(contract.ExtendPlanBackup.Name, contract.PlanStep{Backup: nab.Name})
	made := s.Velero(owner.NACUUID(fake.Cluster, nab.Namespace, nab.Name, string(nab.UID)))
	assert.WithinDuration(t, s.now.Add(720*time.Hour), made.Status.Expiration.Time, time.Second)
	assert.Empty(t, s.refresh().Extend)
}

// Of a backup that Velero has deleted the object is left. It is removed, with no data, once Velero has not found it for a week.
func TestTheObjectOfABackupThatIsGoneIsRemoved(t *testing.T) {
	s := newScene(t, nil)
	s.now = s.now.Add(time.Minute)
	nab := s.run()
	s.ends(nab, velerov1.BackupPhaseCompleted)
	nab = s.Read(nab.Name)
	meta.SetStatusCondition(&nab.Status.Conditions, metav1.Condition{
		Type: string(oadpv1alpha1.NonAdminConditionAccepted), Status: metav1.ConditionTrue,
		Reason: oadpv1alpha1.ReasonVeleroBackupNotFound, LastTransitionTime: metav1.NewTime(s.now),
	})
	require.NoError(t, s.Client.Status().Update(t.Context(), nab))
	assert.Empty(t, s.refresh().Delete)
	assert.Zero(t, s.status().Counts.Stored)
	s.act(contract.DeletePlanBackup.Name, contract.PlanStep{Backup: nab.Name})
	assert.False(t, s.Read(nab.Name).Spec.DeleteBackup)
	s.now = s.now.Add(8 * 24 * time.Hour)
	assert.Equal(t, nab.Name, s.refresh().Delete)
	s.act(contract.DeletePlanBackup.Name, contract.PlanStep{Backup: nab.Name})
	exists, err := k8s.Get(t.Context(), s.Client, "NonAdminBackup", nab.Namespace, nab.Name, &oadpv1alpha1.NonAdminBackup{})
	require.NoError(t, err)
	assert.False(t, exists)
}

func TestTheTTLIsSetFromKeep(t *testing.T) {
	s := newScene(t, func(p *holdfastv1alpha1.BackupPlan) { p.Spec.Keep = &holdfastv1alpha1.Keep{Yearly: 7} })
	s.now = s.now.Add(time.Minute)
	assert.Greater(t, s.run().Spec.BackupSpec.TTL.Duration, 7*365*24*time.Hour)
	assert.Contains(t, s.status().Conditions[0].Message, "keep needs ttl 6")

	s = newScene(t, func(*holdfastv1alpha1.BackupPlan) {})
	s.now = s.now.Add(time.Minute)
	assert.Zero(t, s.run().Spec.BackupSpec.TTL, "Velero's server has a default of its own (velero#4824)")
	assert.NotContains(t, s.status().Conditions[0].Message, "ttl")

	s = newScene(t, func(p *holdfastv1alpha1.BackupPlan) { p.Spec.Keep = &holdfastv1alpha1.Keep{Yearly: 7, Daily: 2} })
	s.Policy.EnforceBackupSpec = &velerov1.BackupSpec{TTL: metav1.Duration{Duration: 72 * time.Hour}}
	s.now = s.now.Add(time.Minute)
	assert.Zero(t, s.run().Spec.BackupSpec.TTL, "the administrator's")
	assert.Equal(t, "True KeepExceedsTTL", s.reason("Ready"))
	assert.Contains(t, s.status().Conditions[0].Message, "yearly")
	assert.NotContains(t, s.status().Conditions[0].Message, "daily")
}
