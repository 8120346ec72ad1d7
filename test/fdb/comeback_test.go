package fdb_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/k8s/eventually"
)

// What was lost comes back into the database in which it was: the latest, as of a version, as of a time. Before that, what is too
// old has expired; at the end the data of the backup go with it.
func TestWhatWasLostComesBack(t *testing.T) { onBoth(t, whatWasLostComesBack) }

func whatWasLostComesBack(t *testing.T, x *tenant) {
	const begin, end = "comeback/", "comeback0"
	ranges := []fdbv1alpha1.KeyRange{{Start: begin, End: end}}
	x.cluster("comeback")
	db := x.console("comeback")
	db.write(begin, end, map[string]string{"comeback/a": "0"})
	backup := x.backUp("comeback", policy("12s", ""), func(spec *fdbv1alpha1.FoundationDBBackupSpec) { spec.KeyRanges = ranges })
	early := oldest(x.await(backup, "restorable", restorable))
	x.await(backup, "what is too old has expired", func(o *fdbv1alpha1.FoundationDBBackup) bool {
		return hasExpired(o) && oldest(o) > early
	})
	x.requireNoLogsBefore("comeback", early)
	x.edit(backup, func(spec *fdbv1alpha1.FoundationDBBackupSpec) { spec.Expiry.MaxRetention = "" })

	first := map[string]string{"comeback/a": "1", "comeback/b": "1"}
	version := db.write(begin, end, first)
	time.Sleep(x.grain())
	at := time.Now().Truncate(time.Second)
	time.Sleep(x.grain())
	last := map[string]string{"comeback/a": "2", "comeback/c": "2"}
	reached := db.write(begin, end, last)
	// The latest restorable version may be that of a snapshot, beyond which nothing is logged.
	eventually.Succeeds(t, patience, func() error {
		ends := x.logEnds("comeback")
		if slices.Max(append(ends, 0)) > reached {
			return nil
		}
		return fmt.Errorf("version %d is not logged: %v", reached, ends)
	})
	x.edit(backup, func(spec *fdbv1alpha1.FoundationDBBackupSpec) { spec.BackupState = fdbv1alpha1.BackupStateStopped })
	x.await(backup, "stopped", reconciled)

	completed := restoreState(fdbv1alpha1.RestoreCompleted)
	for _, test := range []struct {
		name  string
		alter func(*fdbv1alpha1.FoundationDBRestoreSpec)
		want  map[string]string
	}{
		{"latest", func(*fdbv1alpha1.FoundationDBRestoreSpec) {}, last},
		{"version", func(spec *fdbv1alpha1.FoundationDBRestoreSpec) { spec.Version = version }, first},
		{"time", func(spec *fdbv1alpha1.FoundationDBRestoreSpec) {
			spec.SourceClusterName, spec.Timestamp = "comeback", ptr.To(metav1.NewTime(at))
		}, first},
	} {
		db.write(begin, end, nil)
		require.Empty(t, db.keys(begin, end), test.name)
		restore := x.restore("comeback-"+test.name, "comeback", func(spec *fdbv1alpha1.FoundationDBRestoreSpec) {
			spec.BackupName, spec.KeyRanges = "comeback", ranges
			test.alter(spec)
		})
		done := x.awaitRestore(restore, test.name+" restored", completed)
		assert.NotZero(t, done.Status.RestoredVersion, test.name)
		assert.Equal(t, test.want, db.keys(begin, end), test.name)
	}

	require.NotEmpty(t, x.data("comeback"))
	require.NoError(t, x.client.Delete(t.Context(), backup))
	x.awaitGone(backup)
	assert.Empty(t, x.data("comeback"))
}

// grain is how far from a version a time must be to stand for it: FoundationDB notes every 10 s which version it has reached.
func (x *tenant) grain() time.Duration {
	if x.servers != nil {
		return 12 * time.Second
	}
	return 2 * time.Second
}
