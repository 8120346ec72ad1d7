package fdb_test

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/k8s/eventually"
	fdbstate "holdfast.dev/holdfast/test/fdbsim/state"
)

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

// destination makes an empty database with agents, which a stopped FoundationDBBackup brings, and returns its name.
func (x *tenant) destination(name string) string {
	x.t.Helper()
	database := x.cluster(name)
	agents := x.backUp(name, func(spec *fdbv1alpha1.FoundationDBBackupSpec) { spec.BackupState = fdbv1alpha1.BackupStateStopped })
	x.await(agents, "agents", reconciled)
	return database
}

// restore creates a FoundationDBRestore.
func (x *tenant) restore(name, into string, alter func(*fdbv1alpha1.FoundationDBRestoreSpec)) *fdbv1alpha1.FoundationDBRestore {
	x.t.Helper()
	object := &fdbv1alpha1.FoundationDBRestore{
		ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: name},
		Spec:       fdbv1alpha1.FoundationDBRestoreSpec{DestinationClusterName: into},
	}
	alter(&object.Spec)
	require.NoError(x.t, x.client.Create(x.t.Context(), object))
	x.t.Cleanup(func() {
		if x.t.Failed() {
			x.t.Logf("%s", x.kubectl("get", "foundationdbrestore", name, "-o", "yaml"))
		}
		_ = x.client.Delete(context.Background(), object.DeepCopy()) // it may be gone
	})
	return object
}

func (x *tenant) readRestore(object *fdbv1alpha1.FoundationDBRestore) (*fdbv1alpha1.FoundationDBRestore, error) {
	present := &fdbv1alpha1.FoundationDBRestore{}
	ctx, cancel := context.WithTimeout(x.t.Context(), callPatience)
	defer cancel()
	return present, x.client.Get(ctx, client.ObjectKeyFromObject(object), present)
}

func (x *tenant) awaitRestore(
	object *fdbv1alpha1.FoundationDBRestore, want string, ok func(*fdbv1alpha1.FoundationDBRestore) bool,
) *fdbv1alpha1.FoundationDBRestore {
	x.t.Helper()
	var present *fdbv1alpha1.FoundationDBRestore
	eventually.Succeeds(x.t, patience, func() (err error) {
		if present, err = x.readRestore(object); err == nil && !ok(present) {
			time.Sleep(readEvery)
			err = fmt.Errorf("%s has %s", object.Name, inWords(present.Status))
		}
		if err != nil {
			err = fmt.Errorf("wanted: %s; %w", want, err)
		}
		return err
	})
	return present
}

func (x *tenant) awaitRestoreGone(object *fdbv1alpha1.FoundationDBRestore) {
	x.t.Helper()
	x.awaitNone(x.client, object, &fdbv1alpha1.FoundationDBRestore{})
}

// restoreState is a condition for a state.
func restoreState(state fdbv1alpha1.ObservedRestoreState) func(*fdbv1alpha1.FoundationDBRestore) bool {
	return func(object *fdbv1alpha1.FoundationDBRestore) bool { return object.Status.State == state }
}

// hasOfRestore is a condition for a condition with a reason.
func hasOfRestore(kind, reason string) func(*fdbv1alpha1.FoundationDBRestore) bool {
	return func(object *fdbv1alpha1.FoundationDBRestore) bool {
		found := meta.FindStatusCondition(object.Status.Conditions, kind)
		return found != nil && found.Reason == reason
	}
}

func restoreReason(reason string) func(*fdbv1alpha1.FoundationDBRestore) bool {
	return hasOfRestore(fdbv1alpha1.ConditionIncorrectRestoreState, reason)
}

func requireRestores(t *testing.T, database string, want int) {
	t.Helper()
	starts, err := sim.CallsOf(database, "fdbrestore", "start")
	require.NoError(t, err)
	done := 0
	for _, call := range starts {
		if call.Ended() && call.ExitCode == 0 && !dry(call.Args) {
			done++
		}
	}
	require.Equal(t, want, done, "%+v", starts)
}

func dry(args []string) bool {
	for _, arg := range args {
		if arg == "-n" || arg == "--dryrun" {
			return true
		}
	}
	return false
}

// What was backed up comes back in another database: of a backup by name, and in part by its URL.
func TestRestores(t *testing.T) { onBothIfLong(t, restores) }

func restores(t *testing.T, x *tenant) {
	x.cluster("orders")
	db := x.console("orders")
	db.write("a", "zz", map[string]string{"a": "2", "b": "2", "c": "2"})
	backup := x.backUp("orders")
	url := x.await(backup, "reconciled", reconciled).Status.Backups[0].URL
	version := db.write("d", "e", map[string]string{"d": "2"})
	last := map[string]string{"a": "3", "z": "3"}
	end := db.write("a", "zz", last)
	x.await(backup, "all can be restored", func(o *fdbv1alpha1.FoundationDBBackup) bool {
		return latest(o) > end
	})
	for title, test := range map[string]struct {
		alter func(*fdbv1alpha1.FoundationDBRestoreSpec)
		want  map[string]string
	}{
		"latest": {func(s *fdbv1alpha1.FoundationDBRestoreSpec) { s.BackupName = "orders" }, last},
		"part": {func(s *fdbv1alpha1.FoundationDBRestoreSpec) {
			s.BackupURL, s.Credentials = url, &fdbv1alpha1.CredentialsReference{SecretName: "store"}
			s.Version, s.KeyRanges = version, []fdbv1alpha1.KeyRange{{Start: "b", End: "d"}}
		}, map[string]string{"b": "2", "c": "2"}},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			x := x.in(t)
			into := x.destination("into-" + title)
			restore := x.restore("restore-"+title, "into-"+title, test.alter)
			done := x.awaitRestore(restore, "completed", restoreState(fdbv1alpha1.RestoreCompleted))
			assert.Empty(t, fdbv1alpha1.Unmet(done.Status.Conditions))
			x.requireReady("fdbr", done)
			assert.NotZero(t, done.Status.RestoredVersion)
			assert.EqualValues(t, 100, done.Status.Progress.PercentDone)
			assert.Equal(t, test.want, x.console("into-"+title).keys("a", "zz"), "and it is open again")
			if x.servers == nil {
				requireRestores(t, into, 1)
			}
			t.Log(x.kubectl("get", "fdbr"))
			again := x.restore("again-"+title, "into-"+title, test.alter)
			refused := x.awaitRestore(again, "not empty", restoreReason(fdbv1alpha1.ReasonDatabaseNotEmpty))
			assert.Equal(t, fdbv1alpha1.RestorePending, refused.Status.State, "an earlier restore is not taken for this one")
		})
	}
}

// What keeps a restore from its start is said in plain words, and waited for.
func TestWhatARestoreWaitsFor(t *testing.T) {
	t.Parallel()
	x := newTenant(t)
	source := x.cluster("source")
	require.NoError(t, sim.Set(source, map[string]string{"k": "v"}))
	into := x.cluster("into")
	restore := x.restore("patient", "into", func(s *fdbv1alpha1.FoundationDBRestoreSpec) { s.BackupName = "source" })
	x.awaitRestore(restore, "no such backup", hasOfRestore(fdbv1alpha1.ConditionMisconfiguredRestore, fdbv1alpha1.ReasonBackupMissing))
	backup := x.backUp("source")
	x.await(backup, "reconciled", reconciled)
	x.awaitRestore(restore, "no agents", restoreReason(fdbv1alpha1.ReasonNoAgents))
	require.NoError(t, sim.Lock(into, "0123456789abcdef0123456789abcdef"))
	agents := x.backUp("into", func(spec *fdbv1alpha1.FoundationDBBackupSpec) { spec.BackupState = fdbv1alpha1.BackupStateStopped })
	x.await(agents, "agents", reconciled)
	x.awaitRestore(restore, "locked", restoreReason(fdbv1alpha1.ReasonDatabaseLocked))
	requireRestores(t, into, 0)
	require.NoError(t, sim.Lock(into, ""))
	require.NoError(t, sim.Change(into, pausedCluster(true)))
	x.awaitRestore(restore, "paused", restoreReason(fdbv1alpha1.ReasonAgentsPaused))
	require.NoError(t, sim.Change(into, pausedCluster(false)))
	require.NoError(t, sim.Unreachable(into, true))
	x.awaitRestore(restore, "unreachable", restoreReason(fdbv1alpha1.ReasonClusterUnreachable))
	require.NoError(t, sim.Unreachable(into, false))
	x.awaitRestore(restore, "completed", restoreState(fdbv1alpha1.RestoreCompleted))
	requireRestores(t, into, 1)
	same, err := sim.SameKeys(source, into)
	require.NoError(t, err)
	assert.True(t, same)
}

// A restore that is stopped, or whose object is deleted, is aborted, and it is said that partial data are left.
func TestRestoresThatAreEnded(t *testing.T) {
	t.Parallel()
	x := newTenant(t)
	source := x.cluster("source")
	keys := map[string]string{}
	for _, key := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		keys[key] = "v"
	}
	require.NoError(t, sim.Set(source, keys))
	backup := x.backUp("source")
	x.await(backup, "reconciled", reconciled)
	t.Run("stopped", func(t *testing.T) {
		t.Parallel()
		x := x.in(t)
		into, restore := x.slowRestore("stopped")
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"restoreState":"Stopped"}}`))
		require.NoError(t, x.client.Patch(t.Context(), restore.DeepCopy(), patch))
		aborted := x.awaitRestore(restore, "aborted", restoreState(fdbv1alpha1.RestoreAborted))
		found := meta.FindStatusCondition(aborted.Status.Conditions, fdbv1alpha1.ConditionIncorrectRestoreState)
		if found != nil {
			assert.Contains(t, found.Message, "partial")
		}
		requireUnlocked(t, into)
		back := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"restoreState":"Running"}}`))
		require.Error(t, x.client.Patch(t.Context(), restore.DeepCopy(), back), "a restore is never started twice")
	})
	t.Run("deleted", func(t *testing.T) {
		t.Parallel()
		x := x.in(t)
		into, restore := x.slowRestore("deleted")
		require.NoError(t, x.client.Delete(t.Context(), restore.DeepCopy()))
		x.awaitRestoreGone(restore)
		requireUnlocked(t, into)
		assert.Contains(t, x.awaitEventOf(restore, "RestoreAborted"), "partial")
	})
}

// slowRestore restores the backup of the database source into another, and takes its time.
func (x *tenant) slowRestore(name string) (string, *fdbv1alpha1.FoundationDBRestore) {
	x.t.Helper()
	into := x.destination(name)
	require.NoError(x.t, sim.Control(into, func(c *simControl) { c.Restore = time.Hour }))
	restore := x.restore("into-"+name, name, func(s *fdbv1alpha1.FoundationDBRestoreSpec) { s.BackupName = "source" })
	x.awaitRestore(restore, "running", restoreReason(fdbv1alpha1.ReasonRestoring))
	return into, restore
}

func requireUnlocked(t *testing.T, database string) {
	t.Helper()
	cluster, err := sim.State(database)
	require.NoError(t, err)
	require.Empty(t, cluster.LockUID)
}

func pausedCluster(paused bool) func(*fdbstate.Cluster) error {
	return func(cluster *fdbstate.Cluster) error {
		cluster.Paused = paused
		return nil
	}
}
