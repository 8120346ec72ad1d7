package backup_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/workflows/contract"
)

const (
	ownWorkflow  = "default-test-workflow-id"
	ownContainer = "s3.local:443/fdb-backups/lab-2026-08-01T10-00-00Z"
	ownURL       = "blobstore://lab@s3.local/lab-2026-08-01T10-00-00Z?bucket=fdb-backups"
	olderURL     = "blobstore://lab@s3.local/lab-2026-07-01T10-00-00Z?bucket=fdb-backups"
	olderPlace   = "s3.local:443/fdb-backups/lab-2026-07-01T10-00-00Z"
)

// retained returns a world whose backup has a policy, and an older backup beside it.
func retained() *backupWorld {
	w := restorable()
	w.object.Spec.Expiry.MaxRetention = "720h"
	w.tag.Latest = &contract.FDBPoint{Version: 20}
	point := &fdbv1alpha1.RestorePoint{Version: 5}
	w.object.Status.Backups[0].OldestData, w.object.Status.Backups[0].LatestRestorable = point, point
	w.object.Status.Backups = append([]fdbv1alpha1.BackupDetails{{
		Tag: "default", URL: olderURL, State: fdb.StateAborted, OldestData: point, LatestRestorable: point,
	}}, w.object.Status.Backups...)
	return w
}

// stopForGood makes an object a stopped one that has settled.
func stopForGood(w *backupWorld) {
	stop(w.object)
	w.tag.State, w.tag.Running = fdb.StateAborted, false
	w.object.Status.Backups[len(w.object.Status.Backups)-1].State = fdb.StateAborted
	w.object.Status.ObservedGeneration, w.object.Status.Reconciled = 1, true
}

func (r *backupRun) result(result contract.FDBExpiryResult) {
	r.SignalWorkflow(contract.SignalExpiryResult, result)
}

// turned is the end of a turn that began that long after the start of the run.
func (r *backupRun) turned(after time.Duration, reason string, changes ...func(*contract.FDBExpiryResult)) contract.FDBExpiryResult {
	result := contract.FDBExpiryResult{
		Job: contract.FDBJobExpire, Turn: r.start.Add(after).Unix(), At: r.start.Add(after + time.Minute).Unix(),
		Outcome: contract.FDBTurnDone, Reason: reason, Message: "turn of " + after.String(),
	}
	for _, change := range changes {
		change(&result)
	}
	return result
}

func deletes(outcome contract.FDBTurnOutcome) func(*contract.FDBExpiryResult) {
	return func(r *contract.FDBExpiryResult) { r.Job, r.Outcome = contract.FDBJobDelete, outcome }
}

func TestTheQueueKnowsWhatABackupWants(t *testing.T) {
	none, expire := contract.FDBJobNone, contract.FDBJobExpire
	tests := map[string]struct {
		of   func() *backupWorld
		do   func(*backupWorld, *backupRun)
		want []contract.FDBJob
	}{
		"nothing without a policy":                {of: restorable},
		"nothing while there are no data":         {of: newBackupWorld, do: func(w *backupWorld, _ *backupRun) { w.object.Spec.Expiry.MaxRetention = "720h" }},
		"at the start, and each hour":             {of: retained, want: []contract.FDBJob{expire, expire, expire}},
		"once by one that is stopped, which ends": {of: retained, do: func(w *backupWorld, _ *backupRun) { stopForGood(w) }, want: []contract.FDBJob{expire}},
		"that it wants nothing more, when that is so": {of: retained, do: func(w *backupWorld, r *backupRun) {
			r.After(10*time.Minute, func() {
				w.change(func(o *fdbBackup) { o.Spec.Expiry.MaxRetention = "" })
				r.signal()
			})
		}, want: []contract.FDBJob{expire, none}},
		"that it may forget one that had turns": {of: restorable, do: func(w *backupWorld, _ *backupRun) {
			w.object.Status.Expiry = &fdbv1alpha1.BackupExpiryStatus{Turn: 1, Reason: fdbv1alpha1.ExpiryExpired}
		}, want: []contract.FDBJob{none}},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			world := test.of()
			run := world.run()
			if test.do != nil {
				test.do(world, run)
			}
			run.serve(t, contract.FDBBackupInput{}, 2*time.Hour+30*time.Minute)
			assert.Equal(t, test.want, world.queued)
		})
	}
}

func TestTheNextRunAsksTheQueueAgainAndNoGuard(t *testing.T) {
	world := retained()
	next := world.run().serve(t, contract.FDBBackupInput{}, time.Minute)
	require.Equal(t, []contract.FDBJob{contract.FDBJobExpire}, world.queued)
	require.Len(t, world.guarded, 2)
	world.run().serve(t, *next, time.Minute)
	require.Len(t, world.queued, 2)
	require.Len(t, world.guarded, 2)
}

func TestTheGuardsKnowWhatIsUsed(t *testing.T) {
	use, leave := "use "+ownContainer+" by "+ownWorkflow, "leave "+olderPlace+" by "+ownWorkflow
	useOlder := "use " + olderPlace + " by " + ownWorkflow
	t.Run("what is there, and what is there no more", func(t *testing.T) {
		world := retained()
		run := world.run()
		run.After(10*time.Minute, func() {
			run.result(run.turned(time.Minute, fdbv1alpha1.ExpiryExpired, func(r *contract.FDBExpiryResult) { r.Deleted = []string{olderURL} }))
		})
		next := run.serve(t, contract.FDBBackupInput{}, time.Hour)
		assert.Equal(t, []string{useOlder, use, leave}, world.guarded)
		assert.Equal(t, []string{ownContainer}, next.Memory.Used)
	})
	t.Run("what is about to be made", func(t *testing.T) {
		world := newBackupWorld()
		world.on = func(name string) {
			if name == "owner" && world.happened("plan") && !world.happened("start default") {
				assert.NotEmpty(t, world.guarded, "before the start")
			}
		}
		run := world.run()
		run.After(time.Minute, run.snapshot)
		run.serve(t, contract.FDBBackupInput{}, time.Hour)
		require.True(t, world.happened("start default"))
		require.Len(t, world.guarded, 1)
		assert.Contains(t, world.guarded[0], "by "+ownWorkflow+", fresh")
	})
	t.Run("one that does not answer keeps no backup from running, and gets the request later", func(t *testing.T) {
		world := newBackupWorld()
		world.deaf = true
		run := world.run()
		run.After(10*time.Minute, run.snapshot)
		run.After(30*time.Minute, func() {
			assert.True(t, world.happened("start default"))
			world.deaf = false
		})
		run.serve(t, contract.FDBBackupInput{}, time.Hour)
		assert.Len(t, world.guarded, 1)
		assert.Empty(t, world.reasons())
	})
	t.Run("one that is stopped waits for it", func(t *testing.T) {
		world := restorable()
		stopForGood(world)
		world.deaf = true
		run := world.run()
		run.After(30*time.Minute, func() { world.deaf = false })
		require.Nil(t, run.serve(t, contract.FDBBackupInput{}, time.Hour))
		assert.Equal(t, []string{use}, world.guarded)
		assert.Less(t, world.counts["observe"], 50)
	})
}

func TestTheResultOfATurnIsPublishedOnce(t *testing.T) {
	world := retained()
	run := world.run()
	first := run.turned(time.Minute, fdbv1alpha1.ExpiryExpired, func(r *contract.FDBExpiryResult) {
		r.Deleted = []string{olderURL}
	})
	unsafe := run.turned(time.Hour, fdbv1alpha1.ExpiryUnsafe, func(r *contract.FDBExpiryResult) { r.Outcome = contract.FDBTurnRefused })
	run.After(10*time.Minute, func() { run.result(first) })
	run.After(20*time.Minute, func() {
		require.Len(t, world.object.Status.Backups, 1)
		assert.Equal(t, ownURL, world.object.Status.Backups[0].URL)
		status := world.object.Status.Expiry
		require.NotNil(t, status)
		at := metav1.NewTime(time.Unix(first.At, 0).UTC())
		assert.Equal(t, fdbv1alpha1.BackupExpiryStatus{
			LastTime: at, Reason: fdbv1alpha1.ExpiryExpired, Message: first.Message, LastExpired: &at, Turn: first.Turn,
		}, *status)
		again := first
		again.Message = "repeated"
		run.result(again)
	})
	run.After(30*time.Minute, func() { assert.Equal(t, first.Message, world.object.Status.Expiry.Message) })
	run.After(90*time.Minute, func() { run.result(unsafe); run.result(first) }) // in the wrong order
	next := run.serve(t, contract.FDBBackupInput{}, 3*time.Hour)
	assert.EqualValues(t, fdbv1alpha1.ExpiryUnsafe, world.object.Status.Expiry.Reason)
	assert.Equal(t, first.At, world.object.Status.Expiry.LastExpired.Unix(), "that stays known")
	assert.Empty(t, world.reasons(), "a refusal is no condition")
	assert.Nil(t, next.Memory.Result)
}

func TestATurnThatFailsIsAConditionUntilOneDoesNot(t *testing.T) {
	world := retained()
	run := world.run()
	failed := func(r *contract.FDBExpiryResult) { r.Outcome = contract.FDBTurnFailed }
	run.After(10*time.Minute, func() { run.result(run.turned(time.Minute, fdbv1alpha1.ExpiryFailed, failed)) })
	run.After(time.Hour, func() {
		assert.Equal(t, []string{fdbv1alpha1.ReasonExpiryFailing}, world.reasons())
		assert.Contains(t, world.object.Status.Conditions[0].Message, "turn of 1m0s")
		run.result(run.turned(50*time.Minute, fdbv1alpha1.ExpiryWaiting, func(r *contract.FDBExpiryResult) { r.Outcome = contract.FDBTurnNotYet }))
	})
	run.serve(t, contract.FDBBackupInput{}, 2*time.Hour)
	assert.Empty(t, world.reasons())
	assert.EqualValues(t, fdbv1alpha1.ExpiryWaiting, world.object.Status.Expiry.Reason)
}

// The workflow of a stopped backup has ended: the result starts it again.
func TestTheResultOfATurnOfAStoppedBackup(t *testing.T) {
	world := retained()
	stopForGood(world)
	run := world.run()
	kept := run.turned(time.Minute, fdbv1alpha1.ExpiryLastSnapshotKept, func(r *contract.FDBExpiryResult) {
		r.Container = &contract.FDBContainer{URL: ownURL, Oldest: &contract.FDBPoint{Version: 9}, Latest: &contract.FDBPoint{Version: 11}}
	})
	require.Nil(t, run.serve(t, contract.FDBBackupInput{Memory: contract.FDBMemory{Result: &kept}}, time.Hour), "it does not end")
	assert.EqualValues(t, fdbv1alpha1.ExpiryLastSnapshotKept, world.object.Status.Expiry.Reason)
	assert.Equal(t, int64(9), world.object.Status.Backups[1].OldestData.Version, "the true range")
	assert.True(t, world.object.Status.Reconciled)
	assert.Zero(t, world.counts["inspect"], "the database is not read for that")
	require.Nil(t, world.run().serve(t, contract.FDBBackupInput{Memory: contract.FDBMemory{Result: &kept}}, time.Hour))
	assert.Equal(t, 1, world.counts["publish"], "repeated it is nothing new")

	failed := run.turned(time.Hour, fdbv1alpha1.ExpiryFailed, func(r *contract.FDBExpiryResult) { r.Outcome = contract.FDBTurnFailed })
	run = world.run()
	run.After(2*time.Hour, func() {
		assert.Equal(t, []string{fdbv1alpha1.ReasonExpiryFailing}, world.reasons())
		run.result(run.turned(90*time.Minute, fdbv1alpha1.ExpiryExpired))
	})
	require.Nil(t, run.serve(t, contract.FDBBackupInput{Memory: contract.FDBMemory{Result: &failed}}, 5*time.Hour), "it ends when all is well")
	assert.Empty(t, world.reasons())
}
