package backup_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeclient "sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/activitytest"
	"holdfast.dev/holdfast/activities/fake"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/metrics/metricstest"
	"holdfast.dev/holdfast/workflows/contract"
)

// What an operator's alerts are made of: each step of a life is counted once, whatever is repeated.
func TestALifeIsCounted(t *testing.T) {
	nab := fake.NAB(activitytest.Name)
	nab.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Minute))
	w := fake.New(t, nab)
	series := []string{
		"holdfast_backup_creation_seconds",
		"holdfast_backup_completion_seconds",
		"holdfast_backup_mirror_seconds",
		`holdfast_backups_total{result="completed"}`,
		`holdfast_backups_total{result="deleted"}`,
		`holdfast_backups_total{result="failed"}`,
		`holdfast_backups_total{result="rejected"}`,
	}
	before := make([]float64, len(series))
	for i, s := range series {
		before[i] = metricstest.Value(t, s)
	}
	twice := func(activities ...string) {
		activitytest.Do(t, w, activities...)
		activitytest.Do(t, w, activities...)
	}
	twice(contract.RefreshBackup.Name, contract.StartBackup.Name)
	w.SetVelero(activitytest.Ours, velerov1.BackupPhaseCompleted)
	twice(contract.RefreshBackup.Name)
	w.EditSpec(activitytest.Name, activitytest.DeleteBackup)
	twice(contract.MarkBackupDeleting.Name, contract.RequestDeletion.Name)
	w.AnswerRequests("")
	twice(contract.RefreshBackup.Name, contract.ReleaseBackup.Name)

	var grown []float64
	for i, s := range series {
		grown = append(grown, metricstest.Value(t, s)-before[i])
	}
	assert.Equal(t, []float64{1, 1, 1, 1, 1, 0, 0}, grown)
}

func TestARejectionIsCounted(t *testing.T) {
	nab := fake.NAB(activitytest.Name)
	nab.Spec.BackupSpec.ExcludedNamespaces = []string{"other"}
	w := fake.New(t, nab)
	assert.InDelta(t, 1, metricstest.Counted(t, `holdfast_backups_total{result="rejected"}`, func() {
		activitytest.Do(t, w, contract.StartBackup.Name)
		activitytest.Do(t, w, contract.StartBackup.Name)
	}), 0)
}

// How long a tenant takes to mend a spec says nothing of ours.
func TestACreationAfterBackingOffIsNotMeasured(t *testing.T) {
	nab := fake.NAB(activitytest.Name)
	nab.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Hour))
	nab.Spec.BackupSpec.ExcludedNamespaces = []string{"other"}
	w := fake.New(t, nab)
	activitytest.Do(t, w, contract.RefreshBackup.Name, contract.StartBackup.Name)
	require.Equal(t, oadpv1alpha1.NonAdminPhaseBackingOff, w.Read(activitytest.Name).Status.Phase)
	w.EditSpec(activitytest.Name, func(spec *oadpv1alpha1.NonAdminBackupSpec) { spec.BackupSpec.ExcludedNamespaces = nil })
	assert.Zero(t, metricstest.Counted(t, "holdfast_backup_creation_seconds", func() {
		activitytest.Do(t, w, contract.RefreshBackup.Name, contract.StartBackup.Name)
	}))
	assert.Equal(t, oadpv1alpha1.NonAdminPhaseCreated, w.Read(activitytest.Name).Status.Phase)
}

func TestWhatAnOperatorMustLookAtIsCounted(t *testing.T) {
	w := activitytest.Created(t, "InProgress")
	w.SetVelero(activitytest.Ours, velerov1.BackupPhaseCompleted)
	assert.InDelta(t, 1, metricstest.Counted(t, `holdfast_access_denied_total{activity_type="refresh-backup"}`, func() {
		for _, err := range []error{activitytest.ErrForbidden, fake.ErrAway} {
			w.Fail(func(string, kubeclient.Object) error { return err })
			_, err := activitytest.Run(t, w, contract.RefreshBackup.Name, contract.BackupStep{Ref: fake.Ref(activitytest.Name)})
			require.Error(t, err)
		}
	}), 0)

	met := false
	w.Fail(func(string, kubeclient.Object) error {
		if met {
			return nil
		}
		met = true
		return apierrors.NewConflict(oadpv1alpha1.Resource(oadpv1alpha1.ResourceNonAdminBackups), activitytest.Name, nil)
	})
	assert.InDelta(t, 1, metricstest.Counted(t, `holdfast_patch_conflicts_total{resource="nonadminbackups"}`, func() {
		activitytest.Do(t, w, contract.RefreshBackup.Name)
	}), 0)
}

// The wait for a turn is measured once, by the lane, when the Velero Backup has been made with it; without a queue nobody waits.
func TestTheWaitForATurnIsMeasured(t *testing.T) {
	const (
		byHand = `holdfast_turn_wait_seconds{lane="by-hand",pool="backups"}`
		plan   = `holdfast_turn_wait_seconds{lane="plan",pool="backups"}`
	)
	measured := func(limit int, labels map[string]string, turns ...contract.UsableTurn) []float64 {
		nab := fake.NAB(activitytest.Name)
		nab.CreationTimestamp, nab.Labels = metav1.NewTime(time.Now().Add(-time.Hour)), labels
		w := fake.New(t, nab)
		w.Policy.Queue.MaxActive = limit
		before := []float64{metricstest.Value(t, byHand), metricstest.Value(t, plan), metricstest.Sum(t, plan)}
		for _, turn := range turns {
			step := contract.BackupStep{Ref: fake.Ref(activitytest.Name), Turn: turn}
			_, err := activitytest.Run(t, w, contract.RefreshBackup.Name, step)
			require.NoError(t, err)
		}
		return []float64{
			metricstest.Value(t, byHand) - before[0], metricstest.Value(t, plan) - before[1],
			min(1, (metricstest.Sum(t, plan)-before[2])/3600),
		}
	}
	given := contract.UsableTurn{Turn: contract.Turn{Number: 1, Given: time.Now().Unix()}, For: contract.TurnUsable}
	ofPlan := map[string]string{holdfastv1alpha1.LabelPlan: "nightly"}
	assert.InDelta(t, 0, metricstest.Counted(t, "holdfast_backup_creation_seconds", func() {
		assert.Equal(t, []float64{0, 1, 1}, measured(1, ofPlan, contract.UsableTurn{}, given, given), "an hour, once")
	}), 0, "the queue's time, not ours")
	assert.Equal(t, []float64{1, 0, 0}, measured(1, nil, given))
	assert.Equal(t, []float64{0, 0, 0}, measured(1, nil, contract.UsableTurn{}), "it waits still")
	assert.Equal(t, []float64{0, 0, 0}, measured(0, ofPlan, contract.UsableTurn{}), "the policy gives no turns")
}
