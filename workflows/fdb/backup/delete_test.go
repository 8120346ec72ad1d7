package backup_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/workflowtest"
)

func TestDataAreDeletedWithTheirObject(t *testing.T) {
	del, none, expire := contract.FDBJobDelete, contract.FDBJobNone, contract.FDBJobExpire
	gone := func(w *backupWorld) { w.gone = true }
	tests := map[string]struct {
		prepare func(*backupWorld)
		during  func(*backupWorld, *backupRun)
		// within is how long it takes at most, waited at least.
		waited, within time.Duration
		queued         []contract.FDBJob
		reason, note   string
		left           []string
		releases       int
		guarded        int
	}{
		"when its turn has come": {
			during: func(_ *backupWorld, r *backupRun) {
				r.After(time.Hour-time.Minute, func() {
					r.result(r.turned(time.Minute, fdbv1alpha1.ExpiryDeleted, deletes(contract.FDBTurnDone)))
				})
			},
			waited: 50 * time.Minute, within: time.Hour, queued: []contract.FDBJob{del, none}, reason: fdbv1alpha1.ExpiryDeleted,
			note: "are deleted", releases: 2, guarded: 2,
		},
		"unless others use them": {
			during: func(_ *backupWorld, r *backupRun) {
				r.After(10*time.Minute, func() {
					r.result(r.turned(time.Minute, fdbv1alpha1.ExpiryKept, deletes(contract.FDBTurnDone), func(r *contract.FDBExpiryResult) {
						r.Kept = []string{ownURL}
					}))
				})
			},
			within: 11 * time.Minute, queued: []contract.FDBJob{del, none}, reason: fdbv1alpha1.ExpiryKept,
			note: "data stay because others use them: " + ownURL, releases: 2, guarded: 2,
		},
		"in a later turn, if the first fails": {
			during: func(w *backupWorld, r *backupRun) {
				r.After(10*time.Minute, func() {
					r.result(r.turned(time.Minute, fdbv1alpha1.ExpiryFailed, deletes(contract.FDBTurnFailed), func(r *contract.FDBExpiryResult) {
						r.Deleted = []string{olderURL}
					}))
				})
				r.After(20*time.Minute, func() {
					assert.EqualValues(t, fdbv1alpha1.ExpiryFailed, w.object.Status.Expiry.Reason)
					assert.Len(t, w.object.Status.Backups, 1, "what is gone is gone")
					r.result(r.turned(15*time.Minute, fdbv1alpha1.ExpiryDeleted, deletes(contract.FDBTurnDone)))
				})
			},
			waited: 20 * time.Minute, within: 21 * time.Minute, queued: []contract.FDBJob{del, none}, reason: fdbv1alpha1.ExpiryDeleted,
			note: "are deleted", releases: 2, guarded: 2,
		},
		"though its cluster is gone": {
			prepare: gone,
			during: func(_ *backupWorld, r *backupRun) {
				r.After(10*time.Minute, func() {
					r.result(r.turned(time.Minute, fdbv1alpha1.ExpiryDeleted, deletes(contract.FDBTurnNothing)))
				})
			},
			within: 11 * time.Minute, queued: []contract.FDBJob{del, none}, reason: fdbv1alpha1.ExpiryDeleted,
			note: "the backup has no data", releases: 2, guarded: 2,
		},
		"at once if nothing was ever started": {
			prepare: func(w *backupWorld) {
				w.object.Status.Backups, w.tag = nil, contract.FDBTag{Tag: "default", State: fdb.StateNeverRan}
			},
			within: time.Second, reason: fdbv1alpha1.ExpiryDeleted, note: "no data", releases: 1,
		},
		"but not in a namespace that ends": {
			prepare: func(w *backupWorld) { w.ending = true },
			within:  time.Second, reason: "DataLeft", note: ownURL, left: []string{olderURL, ownURL}, releases: 1, guarded: 2,
		},
		"nor in one that ends while it waits": {
			during: func(w *backupWorld, r *backupRun) {
				r.After(10*time.Minute, func() { w.ending = true; r.signal() })
			},
			within: 10*time.Minute + time.Second, queued: []contract.FDBJob{del, none}, reason: "DataLeft", note: olderURL,
			left: []string{olderURL, ownURL}, releases: 2, guarded: 2,
		},
		"unless the user thinks better of it": {
			during: func(w *backupWorld, r *backupRun) {
				r.After(10*time.Minute, func() {
					w.change(func(o *fdbBackup) { o.Spec.Expiry.DeletionFinalizer = new(false) })
					r.signal()
				})
			},
			within: 10*time.Minute + time.Second, queued: []contract.FDBJob{del, none}, releases: 1, guarded: 2,
		},
		"and the backup asks the queue again each hour": {
			during: func(_ *backupWorld, r *backupRun) {
				r.After(90*time.Minute, func() {
					r.result(r.turned(80*time.Minute, fdbv1alpha1.ExpiryDeleted, deletes(contract.FDBTurnDone)))
				})
			},
			within: 91 * time.Minute, queued: []contract.FDBJob{del, del, none}, reason: fdbv1alpha1.ExpiryDeleted, note: "are deleted",
			releases: 2, guarded: 2,
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			world := retained()
			removeWithData(world.object)
			if test.prepare != nil {
				test.prepare(world)
			}
			run := world.run()
			if test.during != nil {
				test.during(world, run)
			}
			require.Nil(t, run.serve(t, contract.FDBBackupInput{}, 3*time.Hour), "it does not end")
			assert.Empty(t, world.object.Finalizers)
			assert.Equal(t, test.queued, world.queued)
			require.Len(t, world.released, test.releases)
			last := world.released[test.releases-1]
			lasted := world.at["release"][test.releases-1].Sub(run.start)
			if test.reason != "" {
				assert.GreaterOrEqual(t, lasted, test.waited)
				assert.LessOrEqual(t, lasted, test.within)
				assert.True(t, last.Data)
			}
			assert.Equal(t, test.reason, last.Reason)
			assert.Contains(t, last.Note, test.note)
			assert.Equal(t, test.left, last.DataKept)
			assert.Equal(t, test.reason == "DataLeft", last.Warning)
			for _, request := range world.guarded {
				assert.Contains(t, request, "leave ")
			}
			assert.Len(t, world.guarded, test.guarded, "they are left")
			assert.NotContains(t, world.queued, expire)
		})
	}
}

// A policy's turns end when the deletion is requested: no expiration begins while a deletion stops the backup.
func TestADeletionRemovesTheEntryUntilTheBackupHasEnded(t *testing.T) {
	world := retained()
	world.options = call.Options{Limits: call.Limits{ResourceTimeout: 30 * time.Minute}}
	run := world.run()
	run.After(10*time.Minute, func() {
		world.silent = true
		world.change(removeWithData)
		run.signal()
	})
	run.After(time.Hour, func() {
		run.result(run.turned(59*time.Minute, fdbv1alpha1.ExpiryDeleted, deletes(contract.FDBTurnDone)))
	})
	require.Nil(t, run.serve(t, contract.FDBBackupInput{}, 3*time.Hour))
	assert.Equal(t, []contract.FDBJob{contract.FDBJobExpire, contract.FDBJobNone, contract.FDBJobDelete, contract.FDBJobNone}, world.queued)
	assert.Contains(t, world.abandoned, "its data are deleted nevertheless")
	assert.Len(t, world.released, 2)
}

// A deletion is known from the object: a run without memory goes on where another was killed.
func TestADeletionGoesOnWithoutAMemory(t *testing.T) {
	world := retained()
	removeWithData(world.object)
	require.NotNil(t, world.run().serve(t, contract.FDBBackupInput{}, 10*time.Minute), "it waits for its turn")
	require.Equal(t, []string{fdbv1alpha1.FinalizerDelete}, world.object.Finalizers)
	run := world.run()
	run.After(10*time.Minute, func() {
		run.result(run.turned(time.Minute, fdbv1alpha1.ExpiryDeleted, deletes(contract.FDBTurnDone)))
	})
	require.Nil(t, run.serve(t, contract.FDBBackupInput{}, time.Hour))
	assert.Equal(t, []contract.FDBJob{contract.FDBJobDelete, contract.FDBJobDelete, contract.FDBJobNone}, world.queued)
	assert.Len(t, world.guarded, 2)
	assert.Len(t, world.released, 2)
}

// A start that took effect and was not written down yet is aborted, and its data do not count as another's.
func TestWhatWasStartedUnnoticedIsDeletedToo(t *testing.T) {
	world := retained()
	removeWithData(world.object)
	world.object.Status.Backups[1].State = fdb.StateNeverRan
	require.NotNil(t, world.run().serve(t, contract.FDBBackupInput{}, 10*time.Minute), "it waits for its turn")
	require.Equal(t, []string{fdbv1alpha1.FinalizerDelete}, world.object.Finalizers)
	require.Len(t, world.object.Status.Backups, 2)
	assert.Equal(t, fdb.StateAborted, world.object.Status.Backups[1].State)
}

// A namespace that is being deleted waits for one attempt to abort, and no longer.
func TestANamespaceThatEndsWaitsForOneAbort(t *testing.T) {
	world := retained()
	removeWithData(world.object)
	world.ending = true
	world.failing[contract.FDBAbort] = &contract.FDBFailure{Class: contract.FDBClassTimeout, Message: "no answer"}
	run := world.run()
	require.Nil(t, run.serve(t, contract.FDBBackupInput{}, time.Hour))
	aborts := 0
	for _, step := range world.log {
		if step == "abort default" {
			aborts++
		}
	}
	assert.Equal(t, 1, aborts)
	assert.LessOrEqual(t, world.at["release"][0].Sub(run.start), 2*time.Minute)
	assert.Contains(t, world.abandoned, "no answer")
	assert.Equal(t, []string{olderURL, ownURL}, world.released[0].DataKept)
	details := workflowtest.CurrentDetails(t, &workflowtest.Scenario{TestWorkflowEnvironment: run.TestWorkflowEnvironment})
	assert.Contains(t, details, "**Deleted:** ")
	assert.Contains(t, details, "no answer")
	assert.Contains(t, details, "the data stay at "+olderURL+", "+ownURL)
}
