package backup_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
)

type fdbBackup = fdbv1alpha1.FoundationDBBackup

func stop(o *fdbBackup) { o.Spec.BackupState = fdbv1alpha1.BackupStateStopped }

func pause(o *fdbBackup) { o.Spec.BackupState = fdbv1alpha1.BackupStatePaused }

// removeBackup deletes an object whose data are to stay; deletions of data have tests of their own.
func removeBackup(o *fdbBackup) {
	o.Spec.Expiry.DeletionFinalizer = new(false)
	removeWithData(o)
}

func removeWithData(o *fdbBackup) {
	at := metav1.NewTime(time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC))
	o.DeletionTimestamp = &at
}

// What the workflow does after each event, in order.
func TestTheStagesOfAFoundationDBBackup(t *testing.T) {
	tests := map[string]struct {
		of      func() *backupWorld
		prepare func(*backupWorld)
		during  func(*backupRun)
		want    []string
		reasons []string
		ends    bool
	}{
		"one that is new gets agents, a slot, a plan and a start": {
			of: newBackupWorld, during: func(r *backupRun) { r.After(time.Minute, r.snapshot) },
			want: []string{"agents", "join lab:1", "request acquire", "plan", "start default", "request release"},
		},
		"one that runs only gives back what it may have": {of: restorable, want: []string{"join lab:1", "request release"}},
		"nothing starts without a slot": {
			of: newBackupWorld, prepare: func(w *backupWorld) { w.grants = false },
			want: []string{"agents", "join lab:1", "request acquire"}, reasons: []string{fdbv1alpha1.ReasonWaitingForSlot},
		},
		"the period is modified": {
			of: restorable, prepare: func(w *backupWorld) { w.object.Spec.SnapshotPeriodSeconds = 200 },
			want: []string{"join lab:1", "request release", "modify default"},
		},
		"a pause is requested from the owner": {of: restorable, prepare: func(w *backupWorld) { pause(w.object) }, want: []string{"join lab:1", "request release", "pause"}},
		"a pause by others is ended":          {of: restorable, prepare: func(w *backupWorld) { w.paused = true }, want: []string{"join lab:1", "request release", "resume"}},
		"a stop asks for no slot":             {of: restorable, prepare: func(w *backupWorld) { stop(w.object) }, want: []string{"request release", "abort default"}, ends: true},
		"a stop of one that is served leaves the owner": {
			of: restorable, during: func(r *backupRun) { r.After(time.Minute, func() { r.change(stop); r.signal() }) },
			want: []string{"join lab:1", "request release", "abort default", "leave lab:1"}, ends: true,
		},
		"a restart gets its slot first, and the old one runs until then": {
			of: restorable, prepare: func(w *backupWorld) { w.object.Spec.Destination.Path, w.grants = "moved", false },
			during: func(r *backupRun) {
				r.After(time.Second, func() {
					if !r.happened("request acquire") || r.happened("abort default") {
						panic("no slot requested, or aborted before")
					}
					r.grant()
				})
				r.After(time.Minute, r.snapshot)
			},
			want: []string{"join lab:1", "request acquire", "plan", "abort default", "start default", "request release"},
		},
		"a deletion stops and releases": {of: restorable, prepare: func(w *backupWorld) { removeBackup(w.object) }, want: []string{"request release", "abort default", "release"}, ends: true},
		"another cluster of the same name: the old owner is left, the new one joined": {
			of: restorable, during: func(r *backupRun) { r.After(10*time.Minute, func() { r.owner = "lab:2" }) },
			want: []string{"join lab:1", "request release", "leave lab:1", "join lab:2"},
		},
		"agents are made though the database is silent": {
			of: newBackupWorld, prepare: func(w *backupWorld) { w.silent = true }, want: []string{"agents", "join lab:1"},
			reasons: []string{fdbv1alpha1.ReasonClusterUnreachable},
		},
		"one that is stopped and settled does nothing": {
			of: restorable, prepare: func(w *backupWorld) {
				stop(w.object)
				w.object.Status.ObservedGeneration, w.object.Status.Reconciled = 1, true
			}, want: []string{"request release"}, ends: true,
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			world := test.of()
			if test.prepare != nil {
				test.prepare(world)
			}
			run := world.run()
			if test.during != nil {
				test.during(run)
			}
			next := run.serve(t, contract.FDBBackupInput{}, 30*time.Minute)
			assert.Equal(t, test.ends, next == nil, "ended")
			log := slices.DeleteFunc(slices.Clone(world.log), func(step string) bool { return step == "request count" })
			assert.Equal(t, test.want, slices.Compact(log))
			assert.Equal(t, test.reasons, world.reasons())
		})
	}
}

func TestABackupThatWaitsForASlotAsksAgain(t *testing.T) {
	world := newBackupWorld()
	world.grants = false
	run := world.run()
	run.After(time.Hour, run.grant)
	run.After(time.Hour+time.Minute, run.snapshot)
	run.serve(t, contract.FDBBackupInput{}, 2*time.Hour)
	asked := 0
	for _, step := range world.log {
		if step == "request acquire" {
			asked++
		}
	}
	assert.Greater(t, asked, 10, "if the throttle has lost its memory, it gets to know the backup again")
	assert.True(t, world.happened("start default"))
	assert.Empty(t, world.reasons())
}

// A start that fails is retried, less and less often, and others have their turn meanwhile.
// Whatever fails while a first snapshot is written, its slot is kept.
func TestACommandThatFailsInAFirstSnapshotKeepsTheSlot(t *testing.T) {
	for operation, alter := range map[contract.FDBOperation]func(*fdbv1alpha1.FoundationDBBackupSpec){
		contract.FDBModify: func(spec *fdbv1alpha1.FoundationDBBackupSpec) { spec.SnapshotPeriodSeconds = 200 },
		contract.FDBPause:  func(spec *fdbv1alpha1.FoundationDBBackupSpec) { spec.BackupState = fdbv1alpha1.BackupStatePaused },
		contract.FDBAbort:  func(spec *fdbv1alpha1.FoundationDBBackupSpec) { spec.Destination.Path = "moved" }, // and a start
	} {
		t.Run(string(operation), func(t *testing.T) {
			world := restorable()
			world.tag.State, world.tag.Restorable = fdb.StateRunning, false
			world.failing[operation] = &contract.FDBFailure{Class: contract.FDBClassDenied, Message: "the store says no"}
			run := world.run()
			run.After(10*time.Second, func() {
				world.change(func(o *fdbv1alpha1.FoundationDBBackup) { alter(&o.Spec) })
				run.signal()
			})
			require.NotNil(t, run.serve(t, contract.FDBBackupInput{}, 10*time.Minute))
			assert.Contains(t, strings.Join(world.log, ", "), string(operation))
			assert.NotContains(t, world.log, "request release")
		})
	}
}

func TestAFailingStart(t *testing.T) {
	for class, settled := range map[contract.FDBClass]string{contract.FDBClassDenied: "request release", contract.FDBClassTimeout: "request release"} {
		t.Run(string(class), func(t *testing.T) {
			world := newBackupWorld()
			world.failing[contract.FDBStart] = &contract.FDBFailure{Class: class, Message: "the store says no"}
			run := world.run()
			next := run.serve(t, contract.FDBBackupInput{}, 3*time.Hour)
			require.NotNil(t, next)
			starts := 0
			for _, step := range world.log {
				if step == "start default" {
					starts++
				}
			}
			t.Logf("%d starts in 3 hours, %d status writes", starts, world.counts["publish"])
			assert.Greater(t, starts, 5)
			assert.Less(t, starts, 3*60+20, "once a minute at most")
			assert.Contains(t, world.reasons(), fdbv1alpha1.ReasonToolFailing)
			assert.True(t, world.happened(settled), "the slot is given back")
			assert.Equal(t, 1, world.counts["plan"], "each attempt goes to the same place")
			world.failing = map[contract.FDBOperation]*contract.FDBFailure{}
			run = world.run()
			run.After(10*time.Minute, run.snapshot)
			run.serve(t, *next, time.Hour)
			assert.Empty(t, world.reasons(), "it recovers by itself")
		})
	}
}

func TestWhatCannotBeStoppedIsReleasedInTheEnd(t *testing.T) {
	tests := map[string]struct {
		prepare func(*backupWorld)
		within  time.Duration
		notYet  time.Duration
		says    string
	}{
		"after the resource timeout":     {prepare: func(w *backupWorld) { w.silent = true }, notYet: 10 * time.Minute, within: 16 * time.Minute, says: "does not answer"},
		"at once without a cluster":      {prepare: func(w *backupWorld) { w.gone = true }, within: time.Second, says: "is gone"},
		"at once in an ending namespace": {prepare: func(w *backupWorld) { w.silent, w.ending = true, true }, within: time.Second, says: "does not answer"},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			world := restorable()
			removeBackup(world.object)
			test.prepare(world)
			run := world.run()
			require.Nil(t, run.serve(t, contract.FDBBackupInput{}, 2*time.Hour), "it does not end")
			require.Len(t, world.at["release"], 1)
			waited := world.at["release"][0].Sub(run.start)
			assert.GreaterOrEqual(t, waited, test.notYet)
			assert.LessOrEqual(t, waited, test.within)
			assert.Contains(t, world.abandoned, test.says)
		})
	}
}

func TestAWorkerThatIsNotThere(t *testing.T) {
	world := restorable()
	run := world.run()
	run.OnActivity(contract.InspectFDBBackup.Name, mock.Anything, mock.Anything).
		Return(contract.FDBInspection{}, temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START, nil)).Times(6)
	run.OnActivity(contract.InspectFDBBackup.Name, mock.Anything, mock.Anything).Return(world.inspect)
	run.After(30*time.Second, func() {
		assert.Equal(t, []string{fdbv1alpha1.ReasonNoWorker}, world.reasons())
		assert.Contains(t, world.object.Status.Conditions[0].Message, "no worker picked up the inspection of the database from task queue "+
			"holdfast-fdb-west within 1m0s, and it was not run: either no holdfast-worker with --fdb-bin-dir serves that queue")
		assert.Contains(t, world.object.Status.Conditions[0].Message, "or those that do are busy")
	})
	require.NotNil(t, run.serve(t, contract.FDBBackupInput{}, time.Hour))
	assert.Empty(t, world.reasons(), "a worker has come")
}

func TestAnOwnerThatDoesNotAnswerGetsTheRequestAgain(t *testing.T) {
	world := restorable()
	run := world.run()
	run.OnActivity(contract.RequestFDBCommand.Name, mock.Anything, mock.Anything).
		Return(contract.FDBCommandAnswer{}, temporal.NewNonRetryableApplicationError("no", "Test", nil)).Once()
	run.OnActivity(contract.RequestFDBCommand.Name, mock.Anything, mock.Anything).Return(world.request)
	next := run.serve(t, contract.FDBBackupInput{}, time.Hour)
	assert.True(t, world.happened("join lab:1"))
	assert.Equal(t, "lab:1", next.Memory.Owner)
}

// A signal that comes during the last activity before an end is read.
func TestNoSignalIsLost(t *testing.T) {
	for _, last := range []string{"publish", "request", "owner", "observe"} {
		t.Run(last, func(t *testing.T) {
			world := restorable()
			stop(world.object)
			if last == "request" { // only the release is left to do
				world.object.Status.ObservedGeneration, world.object.Status.Reconciled = 1, true
			}
			run := world.run()
			signaled := false
			world.on = func(name string) {
				if name == last && !signaled && (name != "publish" || world.happened("abort default")) {
					signaled = true
					world.object.Spec.BackupState = fdbv1alpha1.BackupStateRunning
					world.object.Generation++
					run.signal()
				}
			}
			require.NotNil(t, run.serve(t, contract.FDBBackupInput{}, time.Hour), "it ended, and the change was not seen")
			require.True(t, signaled)
			require.Equal(t, int64(2), world.object.Status.ObservedGeneration)
		})
	}
}

func TestTheNextRunKnowsWhatTheLastOneKnew(t *testing.T) {
	world := newBackupWorld()
	world.grants = false
	run := world.run()
	run.After(30*time.Second, run.grant)
	next := run.serve(t, contract.FDBBackupInput{}, time.Minute)
	require.NotNil(t, next)
	require.Equal(t, contract.FDBSlotGranted, next.Memory.Slot)
	require.Equal(t, "lab:1", next.Memory.Owner)
	require.NotZero(t, next.Memory.ProgressAt)
	require.Equal(t, fdb.StateSubmitted, next.ShownPhase)
	starts := func() (found int) {
		for _, step := range world.log {
			if step == "start default" {
				found++
			}
		}
		return found
	}
	require.Equal(t, 1, starts())
	next = world.run().serve(t, *next, 10*time.Minute)
	next = world.run().serve(t, *next, time.Hour)
	require.Equal(t, 1, starts())
	require.True(t, next.Memory.Stalled, "since the first run nothing has moved")
	require.Contains(t, world.log, "request release")
	world.snapshot()
	world.run().serve(t, *next, 10*time.Minute)
	require.Empty(t, world.reasons())
}

func TestInspectionsBackOffAndReturnOnNews(t *testing.T) {
	world := restorable()
	world.options = call.Options{FDBStatusInterval: time.Hour}
	run := world.run()
	run.After(10*time.Hour, func() { world.change(func(o *fdbBackup) { o.Spec.SnapshotPeriodSeconds = 300 }); run.signal() })
	run.serve(t, contract.FDBBackupInput{}, 20*time.Hour)
	var waits []time.Duration
	for i, at := range world.at["observe"][1:] {
		waits = append(waits, at.Sub(world.at["observe"][i]).Round(time.Second))
	}
	t.Log(waits)
	assert.LessOrEqual(t, waits[0], 4*time.Second)
	assert.Contains(t, waits, time.Hour)
	assert.Equal(t, time.Hour, slices.Max(waits))
	quick := 0
	for _, wait := range waits {
		if wait <= 4*time.Second {
			quick++
		}
	}
	assert.Greater(t, quick, 1, "quick inspections return after news")
	assert.Less(t, len(waits), 50)
}

// TestHistoryStaysBounded: a year of inspections of a running backup. Each costs the same, and a run ends where the server suggests it.
func TestHistoryStaysBounded(t *testing.T) {
	const (
		suggested = 4096 // events at which the server suggests another run
		// 2 workflow tasks of 3 events each, 2 markers of local activities, 3 of the inspection, 2 of the timer; and one to spare.
		perPass = 14
		every   = 3 * time.Hour
	)
	world := restorable()
	world.options.FDBStatusInterval = every
	in, runs, year := &contract.FDBBackupInput{}, 0, 365*24*time.Hour
	passes, most := 0, 0
	for elapsed := time.Duration(0); elapsed < year; runs++ {
		run := world.run()
		before := world.counts["observe"]
		world.on = func(name string) {
			if name == "observe" && (world.counts["observe"]-before)*perPass >= suggested {
				run.SetContinueAsNewSuggested(true)
			}
		}
		local := 0
		for _, name := range []string{"agents", "plan", "owner", "request"} {
			local -= world.counts[name]
		}
		next := run.serve(t, *in, year)
		require.NotNil(t, next)
		in = next
		elapsed += run.Now().Sub(run.start)
		made := world.counts["observe"] - before
		passes, most = passes+made, max(most, made)
		for _, name := range []string{"agents", "plan", "owner", "request"} {
			local += world.counts[name]
		}
		require.LessOrEqual(t, local, 2, "besides the inspections a run only joins the owner, and the first sends a request to the throttle")
	}
	require.Equal(t, world.counts["observe"], world.counts["inspect"])
	require.Equal(t, world.counts["observe"], world.counts["publish"])
	require.Equal(t, 1, world.counts["guard"], "the container's guard gets one request")
	require.Zero(t, world.counts["queue"], "nothing is to be expired")
	t.Logf("a year: %d inspections in %d runs, %d at most in a run, which are about %d events", passes, runs, most, most*perPass)
	require.LessOrEqual(t, most*perPass, suggested+2*perPass)
	require.Greater(t, runs, 5)
	require.InDelta(t, float64(year/every), float64(passes), 1000, "one inspection each status interval")
}
