package restore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/workflows/contract"
	fdbrestore "holdfast.dev/holdfast/workflows/fdb/restore"
	"holdfast.dev/holdfast/workflows/workflowtest"
)

func TestARestoreIsPlannedStartedFollowedAndChecked(t *testing.T) {
	w := newRestoreWorld()
	run := w.run()
	run.After(time.Minute, func() { w.enter(fdbrestore.StateRunning) })
	run.After(2*time.Minute, func() {
		require.Equal(t, fdbrestore.StateRunning, w.findings.State)
		require.Equal(t, int32(25), w.findings.Percent)
		require.Equal(t, "Restoring", w.reason())
		w.enter(fdbrestore.StateCompleted)
	})
	require.Nil(t, run.serve(t, contract.FDBRestoreInput{}, time.Hour), "it ends with the restore")
	assert.Equal(t, []string{
		"use " + restoredFrom, "plan 700", "restore lab-u", "join " + workflowtest.Lab, "task DatabaseUnlocked", "task RestoredVersion",
		"leave " + workflowtest.Lab, "leave " + restoredFrom,
	}, w.log)
	assert.Equal(t, fdbrestore.StateCompleted, w.findings.State)
	assert.Equal(t, int64(700), w.findings.Restored)
	assert.Empty(t, w.findings.Conditions)
	require.Len(t, w.findings.Tasks, 2)
	assert.Equal(t, fdbrestore.TaskCompleted, w.findings.Tasks[1].Phase)
	assert.Equal(t, contract.FDBCommand{
		Ref:       contract.ObjectRef{Namespace: "team", Name: "lab", UID: "u"},
		Operation: contract.FDBRestoreStart, Generation: 1, Tag: "lab-u", URL: restoredURL,
	}, *w.requests[0].Command)
	assert.Equal(t, contract.FDBTaskQueue("west"), w.requests[0].Queue)
	assert.False(t, w.requests[0].Member.Paused, "a restore never wants a pause")
	for i, at := range w.at["observe"][1:] {
		assert.LessOrEqual(t, at.Sub(w.at["observe"][i]), 16*time.Second, "a restore that runs is inspected often")
	}
}

// A large container takes minutes to be listed: by a describe, by the dry run for a time, and by the start itself.
func TestALargeContainerHasTheTimeToBeListed(t *testing.T) {
	const describe = 5 * time.Minute
	w := newRestoreWorld()
	run := w.run()
	run.After(time.Minute, w.stop)
	require.Nil(t, run.serve(t, contract.FDBRestoreInput{}, time.Hour))
	assert.True(t, w.happened("abort-restore lab-u"))
	assert.Equal(t, 6*time.Minute, w.limits["inspect"])
	assert.Greater(t, w.limits["resolve"], 2*describe)
	assert.Greater(t, contract.FDBRestoreRun, describe)
	assert.Greater(t, w.limits["restore"], contract.FDBRequestWait+contract.FDBCommandStart+contract.FDBRestoreRun, "the answer is waited for")
	assert.Equal(t, contract.FDBRequestTimeout, w.limits["abort-restore"])
}

func TestNothingIsStartedWhile(t *testing.T) {
	tests := map[string]struct {
		change, cure func(*restoreWorld)
		reason       string
		first        []string // what was done before it was cured
	}{
		"the spec is wrong": {
			func(w *restoreWorld) {
				w.view.Problem = &contract.FDBCondition{Type: "MisconfiguredRestore", Reason: "SecretMissing"}
			},
			func(w *restoreWorld) { w.view.Problem = nil }, "SecretMissing", nil,
		},
		"it does not answer": {func(w *restoreWorld) { w.silent = true }, func(w *restoreWorld) { w.silent = false }, "ClusterUnreachable", nil},
		"it is locked":       {func(w *restoreWorld) { w.seen.LockUID = "x" }, func(w *restoreWorld) { w.seen.LockUID = "" }, "DatabaseLocked", nil},
		"agents are paused": {
			func(w *restoreWorld) { w.seen.AgentsPaused, w.opposed = true, []string{"team/nightly"} },
			func(w *restoreWorld) { w.seen.AgentsPaused = false }, "AgentsPaused",
			[]string{"join " + workflowtest.Lab},
		},
		"there are no agents": {func(w *restoreWorld) { w.seen.Agents = 0 }, func(w *restoreWorld) { w.seen.Agents = 1 }, "NoAgents", nil},
		"it holds data": {
			func(w *restoreWorld) { w.seen.NotEmpty = "'a'-'b'" }, func(w *restoreWorld) { w.seen.NotEmpty = "" }, "DestinationNotEmpty", nil,
		},
		"nothing can be restored": {
			func(w *restoreWorld) {
				w.seen.Unresolved = &contract.FDBFailure{Class: contract.FDBClassNotRestorable, Message: "too old"}
			},
			func(w *restoreWorld) { w.seen.Unresolved = nil }, "NotRestorable", nil,
		},
		"others have the data": {
			func(w *restoreWorld) { w.busy = "nightly expires" }, func(w *restoreWorld) { w.busy = "" }, "DataBusy", []string{"use " + restoredFrom},
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			w := newRestoreWorld()
			test.change(w)
			run := w.run()
			run.RegisterDelayedCallback(func() {
				w.change(func() {
					assert.Equal(t, test.reason, w.reason())
					assert.Equal(t, fdbrestore.StatePending, w.findings.State)
					assert.Zero(t, w.times("plan 700")+w.times("restore lab-u"))
					require.GreaterOrEqual(t, len(w.log), len(test.first))
					assert.Equal(t, test.first, append([]string(nil), w.log[:len(test.first)]...))
					test.cure(w)
				})
			}, 7*time.Minute)
			run.serve(t, contract.FDBRestoreInput{}, 20*time.Minute)
			assert.Equal(t, 1, w.times("restore lab-u"), "it is seen without an event, at the latest after the status interval")
		})
	}
}

func TestAStartThatFails(t *testing.T) {
	tests := map[string]struct {
		class  contract.FDBClass
		reason string
		most   int // attempts within an hour
	}{
		"into data":                {contract.FDBClassNotEmpty, "DestinationNotEmpty", 14},
		"into a lock":              {contract.FDBClassLocked, "DatabaseLocked", 25},
		"with a version refused":   {contract.FDBClassNotRestorable, "NotRestorable", 14},
		"for an unknown reason":    {contract.FDBClassOther, "ToolFailing", 25},
		"without having an effect": {contract.FDBClassTimeout, "ToolFailing", 25},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			w := newRestoreWorld()
			w.failing[contract.FDBRestoreStart] = &contract.FDBOutcome{Failure: &contract.FDBFailure{Class: test.class, Message: "the words"}}
			w.run().serve(t, contract.FDBRestoreInput{}, time.Hour)
			assert.Equal(t, test.reason, w.reason())
			assert.Equal(t, fdbrestore.StatePending, w.findings.State)
			assert.Equal(t, 1, w.times("plan 700"), "once planned, nothing is resolved again")
			assert.Greater(t, w.times("restore lab-u"), 5)
			assert.LessOrEqual(t, w.times("restore lab-u"), test.most)
		})
	}
}

func TestAStartOfUnknownOutcomeIsInspectedBeforeAnythingIsRepeated(t *testing.T) {
	w := newRestoreWorld()
	w.lost = true
	next := w.run().serve(t, contract.FDBRestoreInput{}, time.Hour)
	assert.Equal(t, 1, w.times("restore lab-u"))
	assert.Equal(t, fdbrestore.StateQueued, w.findings.State)
	assert.Zero(t, next.Memory.DoubtUntil)
	w.run().serve(t, *next, time.Hour)
	w.run().serve(t, contract.FDBRestoreInput{}, time.Hour) // and all that the workflow knew is lost
	w.change(func() { w.seen.Restore, w.seen.LockUID = nil, "" })
	w.run().serve(t, contract.FDBRestoreInput{}, time.Hour)
	assert.Equal(t, 1, w.times("restore lab-u"), "never again")
	assert.Equal(t, "StateUnknown", w.reason())
}

func TestARestoreThatRuns(t *testing.T) {
	w := midRestore()
	run := w.run()
	run.After(time.Minute, func() { w.seen.Restore.LastError = "disk full" })
	run.After(15*time.Minute, func() {
		assert.Equal(t, "NoProgress", w.reason())
		assert.Contains(t, w.findings.Conditions[0].Message, "disk full")
		w.seen.Restore.BlocksDone = 3
	})
	run.After(20*time.Minute, func() {
		assert.Equal(t, "Restoring", w.reason(), "it moves again")
		w.seen.AgentsPaused, w.opposed = true, []string{"team/nightly"}
	})
	run.After(25*time.Minute, func() {
		assert.Equal(t, "AgentsPaused", w.reason())
		assert.Contains(t, w.findings.Conditions[0].Message, "team/nightly")
		w.view.Owner = "lab:2"
	})
	run.serve(t, contract.FDBRestoreInput{}, 3*time.Hour+30*time.Minute)
	assert.Equal(t, "DestinationChanged", w.reason())
	assert.Equal(t, fdbrestore.StateRunning, w.findings.State)
	assert.Equal(t, 1, w.times("use "+restoredFrom), "nothing is done for another database")
	assert.Zero(t, w.times("restore lab-u")+w.times("abort-restore lab-u"))
	assert.True(t, w.happened("leave "+workflowtest.Lab))
}

func TestTheGuardGetsARequestEachHour(t *testing.T) {
	w := midRestore()
	next := w.run().serve(t, contract.FDBRestoreInput{}, 5*time.Hour+30*time.Minute)
	assert.Equal(t, 6, w.times("use "+restoredFrom))
	assert.Equal(t, restoredFrom, next.Memory.Reading)
}

// A restore goes on while its database does not answer: its data must stay.
func TestTheGuardGetsARequestEachHourWhileTheDatabaseIsSilent(t *testing.T) {
	w := midRestore()
	w.silent = true
	next := w.run().serve(t, contract.FDBRestoreInput{}, 5*time.Hour+30*time.Minute)
	assert.Equal(t, 6, w.times("use "+restoredFrom))
	assert.Equal(t, restoredFrom, next.Memory.Reading)
	assert.Equal(t, "ClusterUnreachable", w.reason())
}

func TestARestoreIsStopped(t *testing.T) {
	t.Run("before its start", func(t *testing.T) {
		w := newRestoreWorld()
		w.seen.LockUID = "x"
		run := w.run()
		run.After(time.Minute, w.stop)
		require.Nil(t, run.serve(t, contract.FDBRestoreInput{}, time.Hour))
		assert.Empty(t, w.log, "nothing is run")
		assert.Equal(t, fdbrestore.StateAborted, w.findings.State)
		assert.Empty(t, w.findings.Conditions)
	})
	t.Run("while it runs", func(t *testing.T) {
		w := midRestore()
		run := w.run()
		run.After(time.Minute, w.stop)
		require.Nil(t, run.serve(t, contract.FDBRestoreInput{}, time.Hour))
		assert.Equal(t, []string{"join " + workflowtest.Lab, "use " + restoredFrom, "abort-restore lab-u", "leave " + workflowtest.Lab, "leave " + restoredFrom}, w.log)
		assert.Equal(t, fdbrestore.StateAborted, w.findings.State)
		assert.Contains(t, w.findings.Conditions[0].Message, "the destination holds partial data")
	})
	for action, end := range map[string]func(*restoreWorld){
		"stopped": (*restoreWorld).stop, "deleted": func(w *restoreWorld) { w.view.BeingDeleted, w.view.Observed = true, false },
	} {
		t.Run("while it is not known whether it starts: "+action, func(t *testing.T) {
			w := newRestoreWorld()
			w.failing[contract.FDBRestoreStart] = &contract.FDBOutcome{Failure: &contract.FDBFailure{
				Class: contract.FDBClassTimeout, Message: "the worker was lost",
			}}
			run := w.run()
			run.After(10*time.Second, func() { end(w) })
			run.After(5*time.Minute, func() {
				assert.False(t, w.happened("leave "+workflowtest.Lab), "it may start yet")
				w.enter(fdbrestore.StateRunning)
			})
			require.Nil(t, run.serve(t, contract.FDBRestoreInput{}, time.Hour))
			assert.Equal(t, 1, w.times("abort-restore lab-u"))
		})
		t.Run("though it is not known whether it had started: "+action, func(t *testing.T) {
			w := newRestoreWorld()
			w.failing[contract.FDBRestoreStart] = &contract.FDBOutcome{Failure: &contract.FDBFailure{
				Class: contract.FDBClassTimeout, Message: "the worker was lost",
			}}
			run := w.run()
			run.After(10*time.Second, func() { end(w) })
			require.Nil(t, run.serve(t, contract.FDBRestoreInput{}, time.Hour), "it ends when that is over")
			assert.Zero(t, w.times("abort-restore lab-u"))
		})
	}
	t.Run("after its end", func(t *testing.T) {
		w := midRestore()
		w.view.State, w.view.Finalized = fdbrestore.StateCompleted, true
		w.enter(fdbrestore.StateCompleted)
		w.stop()
		require.Nil(t, w.run().serve(t, contract.FDBRestoreInput{}, time.Hour))
		assert.Empty(t, w.log)
		assert.Equal(t, fdbrestore.StateCompleted, w.findings.State)
	})
	t.Run("and the abort fails", func(t *testing.T) {
		w := midRestore()
		w.failing[contract.FDBRestoreAbort] = &contract.FDBOutcome{Failure: &contract.FDBFailure{Class: contract.FDBClassOther, Message: "no"}}
		w.stop()
		run := w.run()
		run.After(5*time.Minute, func() {
			assert.Equal(t, "ToolFailing", w.reason())
			delete(w.failing, contract.FDBRestoreAbort)
		})
		require.Nil(t, run.serve(t, contract.FDBRestoreInput{}, time.Hour))
		assert.Equal(t, fdbrestore.StateAborted, w.findings.State)
	})
}

func TestTheCheckOfTheEnd(t *testing.T) {
	w := midRestore()
	w.view.State = fdbrestore.StateFinalizing // a run before, which is lost, came so far
	w.silent = true
	w.tasks[contract.FDBRestoreTaskUnlocked] = []string{"it is locked"}
	require.Nil(t, w.run().serve(t, contract.FDBRestoreInput{}, time.Hour))
	assert.Equal(t, []string{"task DatabaseUnlocked", "task RestoredVersion"}, w.log, "each is run, whatever those before it found")
	assert.Equal(t, fdbrestore.StateFailed, w.findings.State)
	assert.Zero(t, w.findings.Restored)
	assert.Equal(t, "FinalizationFailing", w.reason())
	assert.Contains(t, w.findings.Conditions[0].Message, "it is locked")
	assert.Empty(t, w.at["inspect"])
}

// A worker of another release may continue what this one has begun: the tasks are those that the history names.
func TestTheTasksOfARestoreAreThoseOfItsHistory(t *testing.T) {
	w := newRestoreWorld()
	run := w.run()
	run.OnSideEffect().Return([]string{contract.FDBRestoreTaskVersion})
	run.After(2*time.Minute, func() { w.enter(fdbrestore.StateCompleted) })
	require.Nil(t, run.serve(t, contract.FDBRestoreInput{}, time.Hour))
	var names []string
	for _, task := range w.findings.Tasks {
		names = append(names, task.Name)
	}
	assert.Equal(t, []string{contract.FDBRestoreTaskVersion}, names)
}

func TestARestoreIsDeleted(t *testing.T) {
	deleted := func(w *restoreWorld) { w.view.BeingDeleted, w.view.Observed = true, false }
	tests := map[string]struct {
		change func(*restoreWorld)
		log    []string
		note   string
		within time.Duration
	}{
		"before its start": {func(w *restoreWorld) { w.view.Plan, w.view.State, w.seen.Restore = nil, "", nil }, []string{"release"}, "", time.Second},
		"while it runs":    {func(*restoreWorld) {}, []string{"abort-restore lab-u", "release"}, "was aborted: the destination holds partial data", time.Second},
		"after its end":    {func(w *restoreWorld) { w.view.State = fdbrestore.StateCompleted }, []string{"release"}, "", time.Second},
		"with its cluster": {
			func(w *restoreWorld) { w.view.Owner, w.view.ClusterGone = "", true }, []string{"release"}, "its FoundationDBCluster is gone", time.Second,
		},
		"without an answer": {func(w *restoreWorld) { w.silent = true }, []string{"release"}, "no answer", 16 * time.Minute},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			w := midRestore()
			test.change(w)
			deleted(w)
			run := w.run()
			require.Nil(t, run.serve(t, contract.FDBRestoreInput{}, time.Hour))
			assert.Equal(t, test.log, w.log)
			assert.Contains(t, w.released.Note, test.note)
			assert.Equal(t, title == "while it runs", w.released.Aborted)
			assert.LessOrEqual(t, run.Now().Sub(run.start), test.within)
			if title == "without an answer" {
				assert.GreaterOrEqual(t, run.Now().Sub(run.start), 10*time.Minute)
			}
		})
	}
}

// A namespace that is being deleted never hangs: one attempt, under a short limit.
func TestARestoreInANamespaceThatIsDeletedIsAbortedOnce(t *testing.T) {
	w := midRestore()
	w.view.BeingDeleted, w.view.NamespaceEnding = true, true
	w.failing[contract.FDBRestoreAbort] = &contract.FDBOutcome{Failure: &contract.FDBFailure{Class: contract.FDBClassOther, Message: "no"}}
	run := w.run()
	require.Nil(t, run.serve(t, contract.FDBRestoreInput{}, time.Hour))
	assert.Equal(t, []string{"abort-restore lab-u", "release"}, w.log)
	assert.Equal(t, run.start.Add(30*time.Second).Unix(), w.requests[0].Until)
	assert.Contains(t, w.released.Note, "was not aborted, because no")
	details := workflowtest.CurrentDetails(t, &workflowtest.Scenario{TestWorkflowEnvironment: run.TestWorkflowEnvironment})
	assert.Contains(t, details, "**Deleted:** the restore was not aborted, because no")
}

// A signal that comes during the last activity before an end is read.
func TestNoSignalOfARestoreIsLost(t *testing.T) {
	for _, last := range []string{"publish", "owner", "guard"} {
		t.Run(last, func(t *testing.T) {
			w := midRestore()
			w.enter(fdbrestore.StateCompleted)
			run := w.run()
			signaled := false
			w.on = func(name string) {
				if name == last && !signaled && (last != "publish" || w.happened("task RestoredVersion")) {
					signaled = true
					w.view.BeingDeleted = true
					run.signal()
				}
			}
			in := contract.FDBRestoreInput{Memory: contract.FDBRestoreMemory{Owner: workflowtest.Lab, Reading: restoredFrom, ReadingSince: run.start.Unix()}}
			require.Nil(t, run.serve(t, in, time.Hour))
			require.True(t, signaled)
			require.NotNil(t, w.released, "it ended, and the deletion was not seen")
		})
	}
}

// An event interrupts the check of the end, which may wait for long.
func TestADeletionDoesNotWaitForTheCheckOfTheEnd(t *testing.T) {
	w := midRestore()
	w.enter(fdbrestore.StateCompleted)
	run := w.run()
	w.notYet = true
	run.After(time.Minute, func() { w.view.BeingDeleted = true })
	require.Nil(t, run.serve(t, contract.FDBRestoreInput{}, time.Hour))
	assert.NotNil(t, w.released)
	assert.Less(t, run.Now().Sub(run.start), 2*time.Minute)
	assert.Greater(t, w.times("task DatabaseUnlocked"), 3, "it was tried again until then")
}
