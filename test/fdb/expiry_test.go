package fdb_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/fdbsim"
	"holdfast.dev/holdfast/workflows/contract"
)

// policy lets data expire; snapshots follow each other quickly enough for it.
func policy(maxRetention, minRestorable string) change {
	return func(spec *fdbv1alpha1.FoundationDBBackupSpec) {
		spec.SnapshotPeriodSeconds = 3
		spec.Expiry.MaxRetention, spec.Expiry.MinRestorable = maxRetention, minRestorable
	}
}

// expiry is a condition for the reason in status.expiry.
func expiry(reasons ...fdbv1alpha1.ExpiryReason) func(*fdbv1alpha1.FoundationDBBackup) bool {
	return func(object *fdbv1alpha1.FoundationDBBackup) bool {
		return object.Status.Expiry != nil && slices.Contains(reasons, object.Status.Expiry.Reason)
	}
}

// hasExpired is a condition: a turn has let data expire, whatever came of later ones.
func hasExpired(object *fdbv1alpha1.FoundationDBBackup) bool {
	return object.Status.Expiry != nil && object.Status.Expiry.LastExpired != nil
}

// expiries are the runs of fdbbackup expire for a database.
func expiries(t *testing.T, database string) []fdbsim.Call {
	t.Helper()
	calls, err := sim.CallsOf(database, "fdbbackup", "expire")
	require.NoError(t, err)
	return calls
}

// pods are those that expire or delete for the namespace.
func (x *tenant) pods() []corev1.Pod {
	x.t.Helper()
	pods, err := x.readPods()
	require.NoError(x.t, err)
	return pods
}

func (x *tenant) readPods() ([]corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(x.t.Context(), callPatience)
	defer cancel()
	var list corev1.PodList
	err := admin.List(ctx, &list, client.InNamespace(x.namespace), client.HasLabels{fdbv1alpha1.LabelExpiry})
	return list.Items, err
}

func (x *tenant) podsOf(backup *fdbv1alpha1.FoundationDBBackup) []corev1.Pod {
	x.t.Helper()
	return slices.DeleteFunc(x.pods(), func(pod corev1.Pod) bool { return pod.Labels[fdbv1alpha1.LabelExpiry] != backup.Name })
}

// awaitPod waits for a pod that expires or deletes and runs.
func (x *tenant) awaitPod(want string, ok func(corev1.Pod) bool) corev1.Pod {
	x.t.Helper()
	var found corev1.Pod
	eventually.Succeeds(x.t, patience, func() error {
		pods, err := x.readPods()
		if err != nil {
			return err
		}
		var phases []string
		for _, pod := range pods {
			if pod.DeletionTimestamp.IsZero() && ok(pod) {
				found = pod
				return nil
			}
			phases = append(phases, pod.Name+" "+string(pod.Status.Phase))
		}
		return fmt.Errorf("wanted: %s; there is %v", want, phases)
	})
	return found
}

func running(pod corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning }

// requireNoLogsBefore awaits log files, and that all of them reach beyond a version. FoundationDB itself, which writes them every
// 20 s, never deletes one that it has written after an expiration of later data: a retention of seconds cannot show this there.
func (x *tenant) requireNoLogsBefore(path string, version int64) {
	x.t.Helper()
	if x.servers != nil {
		return
	}
	eventually.Succeeds(x.t, patience, func() error {
		ends := x.logEnds(path)
		if len(ends) > 0 && slices.Min(ends) > version {
			return nil
		}
		return fmt.Errorf("what is older than version %d is not gone: %v", version, ends)
	})
}

// logEnds returns the versions to which the log files reach.
func (x *tenant) logEnds(path string) (ends []int64) {
	x.t.Helper()
	for _, key := range x.data(path) {
		if parts := strings.Split(key[strings.LastIndex(key, "/")+1:], ","); parts[0] == "log" {
			end, _ := strconv.ParseInt(parts[2], 10, 64) // 0, which is too old, if it is no version
			ends = append(ends, end)
		}
	}
	return ends
}

// What is older than the policy is gone from the store, and what must stay restorable is restored and compared.
func TestRetention(t *testing.T) {
	t.Parallel()
	x := newTenant(t)
	database := x.cluster("ledger")
	require.NoError(t, sim.Set(database, map[string]string{"early": "1"}))
	backup := x.backUp("ledger", policy("12s", "5s"))
	early := oldest(x.await(backup, "restorable", restorable))
	var expired *fdbv1alpha1.FoundationDBBackup
	eventually.Succeeds(t, patience, func() (err error) {
		require.NoError(t, sim.Set(database, map[string]string{"now": time.Now().String()}))
		if expired, err = x.read(backup); err != nil {
			return err
		}
		if hasExpired(expired) && oldest(expired) > early {
			return nil
		}
		time.Sleep(time.Second) // between two writes
		return fmt.Errorf("the oldest data are those of version %d still: %s", early, inWords(expired.Status))
	})
	require.Len(t, expired.Status.Backups, 1)
	x.edit(backup, func(spec *fdbv1alpha1.FoundationDBBackupSpec) {
		spec.Expiry.MaxRetention, spec.Expiry.MinRestorable = "", ""
	})

	// The oldest data that the status names are there, and nothing older.
	left := expired.Status.Backups[0]
	x.requireNoLogsBefore("ledger", early)
	want := map[string]string{"kept": "yes", "early": "2"}
	require.NoError(t, sim.SetKeys(database, want))
	version, err := sim.Version(database)
	require.NoError(t, err)
	require.NoError(t, sim.SetKeys(database, map[string]string{"later": "x"}))
	x.await(backup, "the version can be restored", func(o *fdbv1alpha1.FoundationDBBackup) bool {
		return latest(o) > version
	})
	copied := x.destination("ledger-copy")
	restore := x.restore("ledger-back", "ledger-copy", func(spec *fdbv1alpha1.FoundationDBRestoreSpec) {
		spec.BackupName, spec.Version = "ledger", version
	})
	done := x.awaitRestore(restore, "completed", restoreState(fdbv1alpha1.RestoreCompleted))
	assert.Equal(t, version, done.Status.RestoredVersion)
	keys, err := sim.Keys(copied)
	require.NoError(t, err)
	assert.Equal(t, want, keys)

	gone := x.destination("ledger-gone")
	refused := x.restore("ledger-early", "ledger-gone", func(spec *fdbv1alpha1.FoundationDBRestoreSpec) {
		spec.BackupURL, spec.Version = left.URL, early
		spec.Credentials = &fdbv1alpha1.CredentialsReference{SecretName: "store"}
	})
	x.awaitRestore(refused, "what has expired cannot be restored", hasOfRestore(
		fdbv1alpha1.ConditionMisconfiguredRestore, fdbv1alpha1.ReasonNotRestorable))
	keys, err = sim.Keys(gone)
	require.NoError(t, err)
	assert.Empty(t, keys)
}

// "Would be unsafe" is a normal result, and the last restorable snapshot of a stopped backup outlives its retention.
func TestWhatMayNotExpireStays(t *testing.T) { onBothIfLong(t, whatMayNotExpireStays) }

func whatMayNotExpireStays(t *testing.T, x *tenant) {
	x.cluster("keeper")
	backup := x.backUp("keeper", policy("10s", ""))
	x.await(backup, "expired", hasExpired)
	x.edit(backup, func(spec *fdbv1alpha1.FoundationDBBackupSpec) { spec.BackupState = fdbv1alpha1.BackupStateStopped })
	x.await(backup, "stopped", reconciled)
	kept := x.await(backup, "the last snapshot is kept", expiry(fdbv1alpha1.ExpiryLastSnapshotKept))
	assert.Contains(t, kept.Status.Expiry.Message, "stopped")
	require.Len(t, kept.Status.Backups, 1)
	assert.NotNil(t, kept.Status.Backups[0].LatestRestorable)
	assert.True(t, kept.Status.Reconciled, "that is no fault")
}

// After a restart the older backups go once the newest holds the minimum, and leave the status.
func TestOlderBackupsGo(t *testing.T) { onBothIfLong(t, olderBackupsGo) }

func olderBackupsGo(t *testing.T, x *tenant) {
	x.cluster("moved")
	backup := x.backUp("moved", policy("15s", "5s"))
	x.await(backup, "reconciled", reconciled)
	x.edit(backup, func(spec *fdbv1alpha1.FoundationDBBackupSpec) { spec.Destination.Path += "/new" })
	x.await(backup, "the old one is gone", func(o *fdbv1alpha1.FoundationDBBackup) bool {
		return reconciled(o) && len(o.Status.Backups) == 1 && strings.Contains(o.Status.Backups[0].URL, "/new-")
	})
	assert.Empty(t, x.data("moved-"))
}

// What happens to a pod is told, and the job is done in the next turn.
func TestFaultsOfPods(t *testing.T) {
	t.Parallel()
	hang := fdbsim.Fault{Hang: true, Times: 1}
	t.Run("evicted", func(t *testing.T) {
		t.Parallel()
		x := newTenant(t)
		database := x.cluster("evicted")
		require.NoError(t, sim.SetFault(database, "fdbbackup expire", hang))
		backup := x.backUp("evicted", policy("12s", ""))
		pod := x.awaitPod("the tool hangs in its pod", func(pod corev1.Pod) bool { return running(pod) && len(expiries(t, database)) > 0 })
		require.NoError(t, stack.Kubelet().Evict(pod.Namespace, pod.Name))
		assert.Contains(t, x.awaitEvent(backup, fdbv1alpha1.ReasonExpiryFailing), "vict")
		x.await(backup, "expired", hasExpired)
	})
	t.Run("deleted by hand", func(t *testing.T) {
		t.Parallel()
		x := newTenant(t)
		database := x.cluster("byhand")
		require.NoError(t, sim.SetFault(database, "fdbbackup expire", hang))
		backup := x.backUp("byhand", policy("12s", ""))
		pod := x.awaitPod("the tool hangs in its pod", func(pod corev1.Pod) bool { return running(pod) && len(expiries(t, database)) > 0 })
		require.NoError(t, admin.Delete(t.Context(), &pod))
		assert.Contains(t, x.awaitEvent(backup, fdbv1alpha1.ReasonExpiryFailing), "deleted")
		x.await(backup, "expired", hasExpired)
	})
	t.Run("a terminating pod blocks its own backup alone", func(t *testing.T) {
		t.Parallel()
		x := newTenant(t)
		database := x.cluster("lingering")
		require.NoError(t, sim.SetFault(database, "fdbbackup expire", hang))
		backup := x.backUp("lingering", policy("12s", ""))
		fence := x.fence()
		pod := x.awaitPod("the tool hangs in its pod", func(pod corev1.Pod) bool {
			return pod.Labels[fdbv1alpha1.LabelExpiry] == backup.Name && running(pod) && len(expiries(t, database)) > 0
		})
		release := stack.Kubelet().HoldTermination(pod.Namespace, pod.Name)
		require.NoError(t, admin.Delete(t.Context(), pod.DeepCopy()))
		awaitQueue(t, "its turn does not count any more", func(state contract.FDBExpiryQueueState) bool {
			return slices.ContainsFunc(state.Turns, func(turn contract.FDBTurn) bool {
				return turn.Ref.UID == string(backup.UID) && turn.Closing
			})
		})
		x.twoTurns(fence)
		require.Len(t, x.podsOf(backup), 1, "never two for one backup")
		release()
		x.await(backup, "expired", hasExpired)
	})
}

// A database that does not answer lets nothing expire, and says so.
func TestAnUnreachableClusterExpiresNothing(t *testing.T) {
	t.Parallel()
	x := newTenant(t)
	database := x.cluster("silent")
	backup, fence := x.backUp("silent", policy("12s", "")), x.fence()
	x.await(backup, "reconciled", reconciled)
	require.NoError(t, sim.Unreachable(database, true))
	x.await(backup, "unreachable", state(fdbv1alpha1.ReasonClusterUnreachable))
	ended := func() (count int) {
		for _, call := range expiries(t, database) {
			if call.Ended() {
				count++
			}
		}
		return count
	}
	before := ended()
	x.twoTurns(fence)
	assert.Equal(t, before, ended(), "nothing expires meanwhile")
	require.NoError(t, sim.Unreachable(database, false))
	back := time.Now()
	x.await(backup, "reconciled again", reconciled)
	x.await(backup, "expired since", func(o *fdbv1alpha1.FoundationDBBackup) bool {
		return o.Status.Expiry != nil && o.Status.Expiry.LastExpired != nil && o.Status.Expiry.LastExpired.After(back)
	})
}

// fence is a backup whose turns show that the queue has gone on meanwhile.
func (x *tenant) fence() *fdbv1alpha1.FoundationDBBackup {
	x.t.Helper()
	x.cluster("fence")
	return x.backUp("fence", policy("12s", ""))
}

// twoTurns waits until the fence has had two turns from now on: each other entry had its chance.
func (x *tenant) twoTurns(fence *fdbv1alpha1.FoundationDBBackup) {
	x.t.Helper()
	turn := func(object *fdbv1alpha1.FoundationDBBackup) int64 {
		if object.Status.Expiry == nil {
			return 0
		}
		return object.Status.Expiry.Turn
	}
	before := turn(x.get(fence))
	for range 2 {
		before = turn(x.await(fence, "another turn", func(o *fdbv1alpha1.FoundationDBBackup) bool { return turn(o) > before }))
	}
}

// backUpOf creates a FoundationDBBackup of a cluster with another name.
func (x *tenant) backUpOf(name, cluster string, changes ...change) *fdbv1alpha1.FoundationDBBackup {
	x.t.Helper()
	return x.backUp(name, append([]change{func(spec *fdbv1alpha1.FoundationDBBackupSpec) { spec.ClusterName = cluster }}, changes...)...)
}

// metric reports whether the worker's metrics have a line that begins so.
func metric(t *testing.T, begin string) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), callPatience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet,
		"http://"+stack.Component(env.FDBWorker).Address(env.AddressMetrics)+"/metrics", nil)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer answer.Body.Close()
	page, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return slices.ContainsFunc(strings.Split(string(page), "\n"), func(line string) bool { return strings.HasPrefix(line, begin) })
}
