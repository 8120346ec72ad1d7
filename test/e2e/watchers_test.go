package e2e_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
)

// A second watcher signals what the first one has not had served in time, and a second worker shares the work: neither makes a write
// that would not be there without it. When the first watcher hangs, the second one is enough. Not parallel: it stops Velero, so that
// every backup meets the same phases one after the other.
func TestTwoWatchersWriteNoMoreThanOne(t *testing.T) {
	actForVelero(t)
	alone := writesOf(t)
	t.Logf("writes of each backup: %v", alone)

	started(t, stack.StartWatcher, "watcher-2")
	started(t, stack.StartWorker, "worker-2")
	noMore := func(writes []map[string]int) bool {
		for i, each := range writes {
			for what, count := range each {
				if count > alone[i][what] {
					return false
				}
			}
		}
		return true
	}
	together := firstFitting(t, func(int) []map[string]int { return writesOf(t) }, noMore)
	assert.True(t, noMore(together), "alone %v, together %v", alone, together)

	first := stack.Component(env.Watcher)
	require.NoError(t, first.Pause())
	t.Cleanup(func() { _ = first.Resume() })
	x := newTenant(t, "heidi")
	nab := x.await(x.backUp("unseen-by-the-first"), "made", func(now *oadpv1alpha1.NonAdminBackup) bool {
		return now.Status.Phase == oadpv1alpha1.NonAdminPhaseCreated
	})
	veleroSays(t, nab, velerov1.BackupPhaseCompleted)
	awaitEnd(t, x.awaitVeleroPhase(nab, velerov1.BackupPhaseCompleted))
	assert.Regexp(t, `holdfast_signal_seconds_count\{kind="NonAdminBackup"\} [1-9]`, metricsOf(t, "watcher-2"), "it took over")
	require.NoError(t, first.Resume())
}

// writesOf takes some backups from their creation until they are settled and counts the writes to each.
func writesOf(t *testing.T) []map[string]int {
	t.Helper()
	const count = 5
	x := newTenant(t, "heidi")
	nabs := make([]*oadpv1alpha1.NonAdminBackup, count)
	for i := range nabs {
		nabs[i] = x.backUp(fmt.Sprintf("each-%d", i))
	}
	for i := range nabs {
		nabs[i] = x.await(nabs[i], "a place in the queue", func(now *oadpv1alpha1.NonAdminBackup) bool {
			return now.Status.QueueInfo != nil && now.Status.QueueInfo.EstimatedQueuePosition > 0
		})
	}
	// None of these phases has a place in the queue, so the watchers' rounds, which come by the clock, write nothing more.
	for _, phase := range []velerov1.BackupPhase{
		velerov1.BackupPhaseWaitingForPluginOperations, velerov1.BackupPhaseFinalizing, velerov1.BackupPhaseCompleted,
	} {
		for _, nab := range nabs {
			veleroSays(t, nab, phase)
		}
		for _, nab := range nabs {
			x.awaitVeleroPhase(nab, phase)
		}
	}
	for _, nab := range nabs {
		awaitEnd(t, nab)
	}
	assert.Len(t, veleroBackupsOf(t, x.namespace), count, "one Velero Backup each")

	requests, err := stack.Audit()
	require.NoError(t, err)
	writes := make([]map[string]int, count)
	for i, nab := range nabs {
		writes[i] = map[string]int{}
		for _, request := range requests {
			if request.Resource == oadpv1alpha1.ResourceNonAdminBackups && request.Namespace == nab.Namespace &&
				request.Name == nab.Name && request.Wrote() {
				writes[i][request.User+" "+request.Verb+" "+request.Subresource]++
			}
		}
		require.Contains(t, writes[i], env.HoldfastWorker+" patch status", "the record is complete")
	}
	return writes
}
