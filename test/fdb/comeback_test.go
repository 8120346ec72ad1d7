package fdb_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
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
	early := x.await(backup, "reconciled", reconciled).Status.Backups[0].OldestData.Version
	x.await(backup, "what is too old has expired", func(o *fdbv1alpha1.FoundationDBBackup) bool {
		oldest := o.Status.Backups[0].OldestData
		return hasExpired(o) && oldest != nil && oldest.Version > early
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
	x.await(backup, "all can be restored", func(o *fdbv1alpha1.FoundationDBBackup) bool {
		return o.Status.Backups[0].LatestRestorable.Version > reached
	})
	x.edit(backup, func(spec *fdbv1alpha1.FoundationDBBackupSpec) { spec.BackupState = fdbv1alpha1.BackupStateStopped })
	x.await(backup, "stopped", reconciled)

	for _, test := range []struct {
		name  string
		alter func(*fdbv1alpha1.FoundationDBRestoreSpec, time.Duration)
		want  map[string]string
	}{
		{"latest", func(*fdbv1alpha1.FoundationDBRestoreSpec, time.Duration) {}, last},
		{"version", func(spec *fdbv1alpha1.FoundationDBRestoreSpec, _ time.Duration) { spec.Version = version }, first},
		{"time", func(spec *fdbv1alpha1.FoundationDBRestoreSpec, shift time.Duration) {
			spec.SourceClusterName, spec.Timestamp = "comeback", ptr.To(metav1.NewTime(at.Add(shift)))
		}, first},
	} {
		db.write(begin, end, nil)
		require.Empty(t, db.keys(begin, end), test.name)
		done := x.restored("comeback-"+test.name, func(spec *fdbv1alpha1.FoundationDBRestoreSpec, shift time.Duration) {
			spec.BackupName, spec.KeyRanges = "comeback", ranges
			test.alter(spec, shift)
		})
		assert.NotZero(t, done.Status.RestoredVersion, test.name)
		assert.Equal(t, test.want, db.keys(begin, end), test.name)
	}

	require.NotEmpty(t, x.data("comeback"))
	require.NoError(t, x.client.Delete(t.Context(), backup))
	x.awaitGone(backup)
	assert.Empty(t, x.data("comeback"))
}

// restored restores into the cluster "comeback". FoundationDB's agents may write, on a busy machine, log files that overlap. Then
// FoundationDB itself cannot restore each version between the oldest and the latest, and other times are tried.
func (x *tenant) restored(
	name string, alter func(*fdbv1alpha1.FoundationDBRestoreSpec, time.Duration),
) (done *fdbv1alpha1.FoundationDBRestore) {
	x.t.Helper()
	completed := restoreState(fdbv1alpha1.RestoreCompleted)
	refused := hasOfRestore(fdbv1alpha1.ConditionMisconfiguredRestore, fdbv1alpha1.ReasonNotRestorable)
	for i, shift := range []time.Duration{0, x.grain() / 3, -x.grain() / 3} {
		restore := x.restore(fmt.Sprintf("%s-%d", name, i), "comeback", func(spec *fdbv1alpha1.FoundationDBRestoreSpec) {
			alter(spec, shift)
		})
		done = x.awaitRestore(restore, name+" restored", func(o *fdbv1alpha1.FoundationDBRestore) bool {
			return completed(o) || (x.servers != nil && refused(o))
		})
		if completed(done) {
			return done
		}
		x.t.Logf("FoundationDB refuses: %v; its files: %q", done.Status.Conditions, x.data("comeback"))
	}
	require.True(x.t, completed(done), "no time can be restored")
	return done
}

// grain is how far from a version a time must be to stand for it: FoundationDB notes every 10 s which version it has reached.
func (x *tenant) grain() time.Duration {
	if x.servers != nil {
		return 12 * time.Second
	}
	return 2 * time.Second
}
