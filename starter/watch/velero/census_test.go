package velero

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

var (
	beingDeleted   = &metav1.Time{Time: time.Unix(1, 0)}
	waitingForTurn = []metav1.Condition{
		{Type: string(oadpv1alpha1.NonAdminConditionAccepted), Status: metav1.ConditionTrue},
		{
			Type: string(oadpv1alpha1.NonAdminConditionQueued), Status: metav1.ConditionFalse,
			Reason: oadpv1alpha1.ReasonWaitingForTurn,
		},
	}
)

func TestABackupIsUnfinishedUntilNobodyButItsTenantHasToAct(t *testing.T) {
	nab := func(phase oadpv1alpha1.NonAdminPhase, made velerov1.BackupPhase, change func(*oadpv1alpha1.NonAdminBackup)) bool {
		nab := &oadpv1alpha1.NonAdminBackup{}
		nab.Status.Phase = phase
		nab.Status.VeleroBackup = &oadpv1alpha1.VeleroBackup{Status: &velerov1.BackupStatus{Phase: made}}
		change(nab)
		return unfinishedBackup(nab)
	}
	asItIs := func(*oadpv1alpha1.NonAdminBackup) {}
	assert.True(t, nab("", "", asItIs), "new")
	assert.True(t, nab(oadpv1alpha1.NonAdminPhaseNew, "", asItIs))
	assert.True(t, nab(oadpv1alpha1.NonAdminPhaseCreated, velerov1.BackupPhaseInProgress, asItIs))
	assert.False(t, nab(oadpv1alpha1.NonAdminPhaseCreated, velerov1.BackupPhaseCompleted, asItIs))
	assert.False(t, nab(oadpv1alpha1.NonAdminPhaseCreated, velerov1.BackupPhasePartiallyFailed, asItIs))
	assert.False(t, nab(oadpv1alpha1.NonAdminPhaseBackingOff, "", asItIs), "its tenant has to mend the spec")
	assert.True(t, nab(oadpv1alpha1.NonAdminPhaseBackingOff, "", func(nab *oadpv1alpha1.NonAdminBackup) {
		nab.Status.Conditions = waitingForTurn
	}))
	assert.False(t, nab(oadpv1alpha1.NonAdminPhaseCreated, velerov1.BackupPhaseInProgress, func(nab *oadpv1alpha1.NonAdminBackup) {
		nab.Status.Conditions = []metav1.Condition{{
			Type: string(oadpv1alpha1.NonAdminConditionAccepted), Status: metav1.ConditionFalse, Reason: "VeleroBackupNotFound",
		}}
	}), "Velero does not know it any more")
	assert.False(t, nab(oadpv1alpha1.NonAdminPhaseDeleting, "", func(nab *oadpv1alpha1.NonAdminBackup) {
		nab.DeletionTimestamp, nab.Finalizers = beingDeleted, []string{oadpv1alpha1.NabFinalizer}
	}), "its tenant has to say what becomes of the data")
	assert.True(t, nab(oadpv1alpha1.NonAdminPhaseDeleting, "", func(nab *oadpv1alpha1.NonAdminBackup) {
		nab.DeletionTimestamp, nab.Spec.ForceDeleteBackup = beingDeleted, true
		nab.Finalizers = []string{oadpv1alpha1.NabFinalizer}
	}))
	assert.False(t, nab(oadpv1alpha1.NonAdminPhaseDeleting, "", func(nab *oadpv1alpha1.NonAdminBackup) {
		nab.DeletionTimestamp, nab.Spec.DeleteBackup, nab.Finalizers = beingDeleted, true, []string{"example.com/keep"}
	}), "a finalizer of its tenant's keeps it")
}

func TestARestoreIsUnfinishedUntilItIsFinalized(t *testing.T) {
	nar := func(made velerov1.RestorePhase, finalization oadpv1alpha1.FinalizationPhase) *oadpv1alpha1.NonAdminRestore {
		nar := &oadpv1alpha1.NonAdminRestore{}
		nar.Status.Phase = oadpv1alpha1.NonAdminPhaseCreated
		nar.Status.VeleroRestore = &oadpv1alpha1.VeleroRestore{Status: &velerov1.RestoreStatus{Phase: made}}
		if finalization != "" {
			nar.Status.Finalization = &oadpv1alpha1.RestoreFinalization{Phase: finalization}
		}
		return nar
	}
	assert.True(t, unfinishedRestore(nar(velerov1.RestorePhaseInProgress, "")))
	assert.True(t, unfinishedRestore(nar(velerov1.RestorePhaseCompleted, oadpv1alpha1.FinalizationPhaseInProgress)))
	assert.False(t, unfinishedRestore(nar(velerov1.RestorePhaseCompleted, oadpv1alpha1.FinalizationPhaseCompleted)))
	assert.False(t, unfinishedRestore(nar(velerov1.RestorePhaseFailed, "")), "there is nothing to finalize")
	deleted := nar(velerov1.RestorePhaseCompleted, oadpv1alpha1.FinalizationPhaseCompleted)
	deleted.DeletionTimestamp, deleted.Finalizers = beingDeleted, []string{oadpv1alpha1.NarFinalizer}
	assert.True(t, unfinishedRestore(deleted))
	deleted.Finalizers = []string{"example.com/keep"}
	assert.False(t, unfinishedRestore(deleted))
}

func TestADrillIsUnfinishedUntilItIsOverOrKept(t *testing.T) {
	for phase, want := range map[holdfastv1alpha1.DrillPhase]bool{
		"": true, holdfastv1alpha1.DrillRestoring: true, holdfastv1alpha1.DrillKept: false, holdfastv1alpha1.DrillEnded: false,
	} {
		drill := &holdfastv1alpha1.RestoreDrill{}
		drill.Status.Phase = phase
		assert.Equal(t, want, unfinishedDrill(drill), phase)
		drill.DeletionTimestamp = beingDeleted
		assert.False(t, unfinishedDrill(drill), phase)
	}
}
