package activities_test

import (
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeclient "sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/fake"
	"holdfast.dev/holdfast/workflows/contract"
)

// counted returns a counter's value, or how often a histogram was fed. label may be empty.
func counted(t *testing.T, name, label string) float64 {
	t.Helper()
	families, err := ctrlmetrics.Registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, series := range family.GetMetric() {
			if label == "" || series.GetLabel()[0].GetValue() == label {
				return valueOf(series)
			}
		}
	}
	return 0
}

func valueOf(series *dto.Metric) float64 {
	if histogram := series.GetHistogram(); histogram != nil {
		return float64(histogram.GetSampleCount())
	}
	return series.GetCounter().GetValue()
}

// What an operator's alerts are made of: each step of a life is counted once, whatever is repeated.
func TestALifeIsCounted(t *testing.T) {
	nab := fake.NAB(name)
	nab.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Minute))
	w := fake.New(t, nab)
	series := []struct{ name, label string }{
		{"holdfast_backup_creation_seconds", ""},
		{"holdfast_backup_completion_seconds", ""},
		{"holdfast_backup_mirror_seconds", ""},
		{"holdfast_backups_total", "completed"},
		{"holdfast_backups_total", "deleted"},
		{"holdfast_backups_total", "failed"},
		{"holdfast_backups_total", "rejected"},
	}
	before := make([]float64, len(series))
	for i, s := range series {
		before[i] = counted(t, s.name, s.label)
	}
	twice := func(activities ...string) {
		do(t, w, activities...)
		do(t, w, activities...)
	}
	twice(contract.ActivityRefreshBackup, contract.ActivityStartBackup)
	w.SetVelero(ours, velerov1.BackupPhaseCompleted)
	twice(contract.ActivityRefreshBackup)
	w.EditSpec(name, deleteBackup)
	twice(contract.ActivityMarkBackupDeleting, contract.ActivityRequestDeletion)
	w.AnswerRequests("")
	twice(contract.ActivityRefreshBackup, contract.ActivityReleaseBackup)

	var grown []float64
	for i, s := range series {
		grown = append(grown, counted(t, s.name, s.label)-before[i])
	}
	assert.Equal(t, []float64{1, 1, 1, 1, 1, 0, 0}, grown)
}

func TestARejectionIsCounted(t *testing.T) {
	nab := fake.NAB(name)
	nab.Spec.BackupSpec.ExcludedNamespaces = []string{"other"}
	w := fake.New(t, nab)
	before := counted(t, "holdfast_backups_total", "rejected")
	do(t, w, contract.ActivityStartBackup)
	do(t, w, contract.ActivityStartBackup)
	assert.InDelta(t, before+1, counted(t, "holdfast_backups_total", "rejected"), 0)
}

func TestWhatAnOperatorMustLookAtIsCounted(t *testing.T) {
	w := created(t, "InProgress")
	w.SetVelero(ours, velerov1.BackupPhaseCompleted)
	denied := counted(t, "holdfast_access_denied_total", contract.ActivityRefreshBackup)
	for _, err := range []error{errForbidden, fake.ErrAway} {
		w.Fail(func(string, kubeclient.Object) error { return err })
		_, err := run(t, w, contract.ActivityRefreshBackup, contract.BackupStep{Ref: fake.Ref(name)})
		require.Error(t, err)
	}
	assert.InDelta(t, denied+1, counted(t, "holdfast_access_denied_total", contract.ActivityRefreshBackup), 0)

	conflicts := counted(t, "holdfast_patch_conflicts_total", oadpv1alpha1.ResourceNonAdminBackups)
	met := false
	w.Fail(func(string, kubeclient.Object) error {
		if met {
			return nil
		}
		met = true
		return apierrors.NewConflict(oadpv1alpha1.Resource(oadpv1alpha1.ResourceNonAdminBackups), name, nil)
	})
	do(t, w, contract.ActivityRefreshBackup)
	assert.InDelta(t, conflicts+1, counted(t, "holdfast_patch_conflicts_total", oadpv1alpha1.ResourceNonAdminBackups), 0)
}
