package fdb_test

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/test/fdbsim"
	"holdfast.dev/holdfast/test/tools"
	"holdfast.dev/holdfast/workflows/contract"
)

// awaitQueue waits until the state of the queue of expirations is as wished.
func awaitQueue(t *testing.T, want string, ok func(contract.FDBExpiryQueueState) bool) {
	t.Helper()
	eventually.Succeeds(t, patience, func() error {
		ctx, cancel := context.WithTimeout(t.Context(), callPatience)
		defer cancel()
		answer, err := temporal.QueryWorkflow(ctx, contract.FDBExpiryQueueID(stack.ClusterID()), "", contract.QueryState)
		if err != nil {
			return fmt.Errorf("wanted: %s; %w", want, err)
		}
		var state contract.FDBExpiryQueueState
		if err := answer.Get(&state); err != nil || ok(state) {
			return err
		}
		time.Sleep(readEvery)
		return fmt.Errorf("wanted: %s; the queue has %s", want, inWords(state))
	})
}

// queued is whether a backup has an entry in the queue.
func queued(object *fdbv1alpha1.FoundationDBBackup, want bool) func(contract.FDBExpiryQueueState) bool {
	return func(state contract.FDBExpiryQueueState) bool {
		return want == slices.ContainsFunc(state.Entries, func(entry contract.FDBQueueEntry) bool {
			return entry.Ref.UID == string(object.UID)
		})
	}
}

// setLimit does what an operator does.
func setLimit(t *testing.T, limit int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	command := exec.CommandContext(ctx, stack.Binary(tools.Holdfast), "fdb", "set-limit", strconv.Itoa(limit),
		"--cluster-id", stack.ClusterID())
	command.Env = []string{"HOME=" + t.TempDir(), "TEMPORAL_ADDRESS=" + stack.TemporalAddress()}
	output, err := command.CombinedOutput()
	require.NoErrorf(t, err, "%s", output)
	t.Logf("%s", output)
}

// most is how many of the calls ran at the same time.
func most(calls []fdbsim.Call) int {
	at := 0
	for _, one := range calls {
		count := 0
		for _, other := range calls {
			if !other.Begin.After(one.Begin) && (!other.Ended() || other.End.After(one.Begin)) {
				count++
			}
		}
		at = max(at, count)
	}
	return at
}

// expirations take turns, one at a time, and three at a time where an operator says so; one whose tool hangs is stopped at the limit,
// and the others proceed.
func (c *crowd) expirations(t *testing.T) {
	x := c.in(t)
	for _, backup := range c.backups {
		x.await(backup, "expired", hasExpired)
	}
	assert.Contains(t, x.awaitEvent(c.backups[stuck], fdbv1alpha1.ReasonExpiryFailing), "limit")
	var all []fdbsim.Call
	for _, database := range c.databases {
		all = append(all, expiries(t, database)...)
	}
	assert.Equal(t, 1, most(endedByPods(all)), "one at a time")

	// Each holds its place for a while, so that it shows how many have one.
	for _, database := range c.databases {
		require.NoError(t, sim.SetFault(database, "fdbbackup expire", fdbsim.Fault{Delay: 4 * time.Second}))
	}
	begin := time.Now()
	setLimit(t, 3)
	eventually.Succeeds(t, patience, func() error {
		var since []fdbsim.Call
		for _, database := range c.databases {
			for _, call := range expiries(t, database) {
				if call.Begin.After(begin) {
					since = append(since, call)
				}
			}
		}
		if many := most(endedByPods(since)); many > 3 {
			return eventually.Stop(fmt.Errorf("%d expirations at a time, of at most three: %+v", many, since))
		}
		if at := most(since); at != 3 {
			return fmt.Errorf("%d expirations at a time, of three", at)
		}
		return nil
	})
	setLimit(t, 0)
	for _, database := range c.databases {
		require.NoError(t, sim.ClearFaults(database))
	}
}

// endedByPods leaves out what was killed with its pod: nobody has written down when that ended.
func endedByPods(calls []fdbsim.Call) []fdbsim.Call {
	return slices.DeleteFunc(slices.Clone(calls), func(call fdbsim.Call) bool { return !call.Ended() && !alive(call.PID) })
}

// comesBack: a queue that somebody has ended comes back with its entries.
func (c *crowd) comesBack(t *testing.T) {
	x := c.in(t)
	require.NoError(t, temporal.TerminateWorkflow(t.Context(), contract.FDBExpiryQueueID(stack.ClusterID()), "", "ended by a test"))
	backup := c.backups[0]
	before := x.get(backup).Status.Expiry.Turn
	other := x.backUpOf("other", backup.Name, policy("12s", ""), func(spec *fdbv1alpha1.FoundationDBBackupSpec) { spec.Tag = "other" })
	x.await(backup, "has turns again", func(o *fdbv1alpha1.FoundationDBBackup) bool { return o.Status.Expiry.Turn > before })
	awaitQueue(t, "it has its place again", queued(backup, true))
	x.await(other, "has its turn", expiry(fdbv1alpha1.ExpiryExpired, fdbv1alpha1.ExpiryUnsafe, fdbv1alpha1.ExpiryNothing))
	for _, one := range append(c.backups, other) {
		x.edit(one, func(spec *fdbv1alpha1.FoundationDBBackupSpec) {
			spec.Expiry.MaxRetention, spec.Expiry.MinRestorable = "", ""
		})
	}
	awaitQueue(t, "without a policy it has no place", queued(backup, false))
}
