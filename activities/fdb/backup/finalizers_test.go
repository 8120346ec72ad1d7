package backup_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"holdfast.dev/holdfast/activities/fake"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

func TestTheFinalizerForTheDataFollowsTheSpec(t *testing.T) {
	w := fake.NewFDBWorld()
	w.SetDeletionFinalizer(t, false)
	view := must(t, w, contract.ObserveFDBBackup.Name, fdbStep)
	require.False(t, view.DeleteWanted || view.DeletionRequested)
	require.Equal(t, []string{fdbv1alpha1.FinalizerStop}, w.Object(t).Finalizers)
	w.SetDeletionFinalizer(t, true)
	require.True(t, must(t, w, contract.ObserveFDBBackup.Name, fdbStep).DeleteWanted)
	w.SetDeletionFinalizer(t, false)
	require.False(t, must(t, w, contract.ObserveFDBBackup.Name, fdbStep).DeleteWanted)
	require.Empty(t, w.Events(), "nobody has deleted it")
}

func TestWhoThinksBetterOfADeletionKeepsTheData(t *testing.T) {
	w := fake.NewFDBWorld()
	must(t, w, contract.ObserveFDBBackup.Name, fdbStep)
	require.NoError(t, w.Delete(t.Context(), w.Object(t)))
	view := must(t, w, contract.ReleaseFDBBackup.Name, contract.FDBRelease{Ref: fake.FDBRef})
	require.False(t, view.Held)
	require.True(t, view.DeleteWanted)
	require.Equal(t, []string{fdbv1alpha1.FinalizerDelete}, w.Object(t).Finalizers)
	w.Events()
	w.SetDeletionFinalizer(t, false)
	view = must(t, w, contract.ObserveFDBBackup.Name, fdbStep)
	require.True(t, view.BeingDeleted)
	require.False(t, view.DeleteWanted || view.Held)
	require.True(t, w.Gone(t))
	events := w.Events()
	require.Len(t, events, 1)
	require.Contains(t, events[0], "Normal DataStay the data stay")
	require.False(t, must(t, w, contract.ObserveFDBBackup.Name, fdbStep).Found)
}

func TestABackupBeingDeletedGetsNoFinalizer(t *testing.T) {
	w := fake.NewFDBWorld()
	w.SetDeletionFinalizer(t, false)
	must(t, w, contract.ObserveFDBBackup.Name, fdbStep)
	require.NoError(t, w.Delete(t.Context(), w.Object(t)))
	w.SetDeletionFinalizer(t, true)
	require.False(t, must(t, w, contract.ObserveFDBBackup.Name, fdbStep).DeleteWanted, "the API server would refuse it")
	require.Equal(t, []string{fdbv1alpha1.FinalizerStop}, w.Object(t).Finalizers)
}

func TestAFoundationDBBackupGoesAfterItsData(t *testing.T) {
	const left = "blobstore://lab@s3.local/left?bucket=b"
	tests := map[string]struct {
		releases []contract.FDBRelease
		events   []string
		gone     bool
		left     float64
	}{
		"the backup first": {releases: []contract.FDBRelease{{}}, events: []string{"Normal Stopped the backup is stopped"}},
		"then the data": {
			releases: []contract.FDBRelease{{}, {Data: true, Reason: "Deleted", Note: "they are gone"}},
			events:   []string{"Normal Stopped the backup is stopped", "Normal Deleted they are gone"}, gone: true,
		},
		"both at once, with a backup that was left": {
			releases: []contract.FDBRelease{{Abandoned: "no answer", Data: true, Reason: "DataLeft", Note: "they stay", Warning: true, DataKept: []string{left}}},
			events:   []string{"Warning Abandoned no answer", "Warning DataLeft they stay"}, gone: true, left: 1,
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			w := fake.NewFDBWorld()
			must(t, w, contract.ObserveFDBBackup.Name, fdbStep)
			require.NoError(t, w.Delete(t.Context(), w.Object(t)))
			before := dataLeft(t, left)
			for _, release := range test.releases {
				release.Ref = fake.FDBRef
				must(t, w, contract.ReleaseFDBBackup.Name, release)
				if !w.Gone(t) {
					must(t, w, contract.ReleaseFDBBackup.Name, contract.FDBRelease{Ref: fake.FDBRef}) // nothing of it is events twice
				}
			}
			assert.Equal(t, test.events, w.Events())
			assert.Equal(t, test.gone, w.Gone(t))
			assert.InDelta(t, test.left, dataLeft(t, left)-before, 0)
		})
	}
}

// dataLeft returns how often the data at a URL were counted as left.
func dataLeft(t *testing.T, url string) float64 {
	t.Helper()
	families, err := ctrlmetrics.Registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() != "holdfast_foundationdbbackup_data_left_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			if metric.GetLabel()[0].GetValue() == url {
				return metric.GetCounter().GetValue()
			}
		}
	}
	return 0
}

func TestTheResultOfATurnIsPublishedWithOneEvent(t *testing.T) {
	w := fake.NewFDBWorld()
	at := time.Date(2026, 8, 1, 10, 0, 0, 0, time.UTC).Unix()
	findings := contract.FDBFindings{
		Ref: fake.FDBRef, Generation: 1, ExpiryAlone: true,
		Expiry: &contract.FDBExpiryResult{Turn: at, At: at + 60, Reason: fdbv1alpha1.ExpiryFailed, Message: "the pod was evicted"},
	}
	view := must(t, w, contract.PublishFDBBackup.Name, findings)
	require.Equal(t, &contract.FDBExpiryView{Turn: at, Reason: "Failed", Message: "the pod was evicted"}, view.Expiry)
	require.Zero(t, w.Object(t).Status.ObservedGeneration)
	events := w.Events()
	require.Len(t, events, 1)
	require.Contains(t, events[0], "Warning ExpiryFailing the pod was evicted")
	w.Wrote()
	must(t, w, contract.PublishFDBBackup.Name, findings)
	require.Empty(t, w.Wrote())
	require.Empty(t, w.Events())
}
