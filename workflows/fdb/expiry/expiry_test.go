package expiry_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
)

func TestATurnHasTheContainerAloneWhileItsPodIsThere(t *testing.T) {
	w := newTurnWorld(toExpire())
	w.results[1] = expiredTo(40, 29)
	r := w.run()
	r.ends(t, expiring())
	assert.Equal(t, []string{
		"expire new", "pod 1 expire new", "remove lab-1785585600-1", "closing", "release new", "result Done Expired", "ended Done",
	}, w.log)
	assert.Contains(t, w.result.Message, "restorable from version")
	assert.Equal(t, described(29), w.result.Container)
}

func TestHowExpirationsEnd(t *testing.T) {
	tests := map[string]struct {
		plan    contract.FDBExpiryPlan
		prepare func(*turnWorld)
		outcome contract.FDBTurnOutcome
		reason  string
		message string
		noPod   bool
	}{
		"nothing is old enough": {
			plan: toExpire(), prepare: func(w *turnWorld) { w.results[1] = &contract.FDBPodResult{Before: described(10)} },
			outcome: contract.FDBTurnNothing, reason: fdbv1alpha1.ExpiryNothing, message: "nothing older than 2026-07-02",
		},
		"FoundationDB refuses": {
			plan: toExpire(), prepare: func(w *turnWorld) { w.results[1] = troubled(contract.FDBClassUnsafe, described(40)) },
			outcome: contract.FDBTurnRefused, reason: fdbv1alpha1.ExpiryUnsafe, message: "a new snapshot is needed",
		},
		"the backup is stopped": {
			plan: func() contract.FDBExpiryPlan {
				plan := toExpire()
				plan.Expire.Stopped = true
				return plan
			}(),
			prepare: func(w *turnWorld) { w.results[1] = troubled(contract.FDBClassUnsafe, described(40)) },
			outcome: contract.FDBTurnRefused, reason: fdbv1alpha1.ExpiryLastSnapshotKept, message: "outlives maxRetention",
		},
		"the tool fails": {
			plan: toExpire(), prepare: func(w *turnWorld) { w.results[1] = troubled(contract.FDBClassDenied, nil) },
			outcome: contract.FDBTurnFailed, reason: fdbv1alpha1.ExpiryFailed, message: "the tool says so",
		},
		"the cluster does not answer": {
			plan: toExpire(), prepare: func(w *turnWorld) { w.results[1] = troubled(contract.FDBClassTimeout, nil) },
			outcome: contract.FDBTurnNotYet, reason: fdbv1alpha1.ExpiryWaiting, message: "does not answer",
		},
		"another holds the container": {
			plan: toExpire(), prepare: func(w *turnWorld) { w.answers["new"] = contract.FDBContainerAnswer{Busy: "team/b restores it"} },
			outcome: contract.FDBTurnNotYet, reason: fdbv1alpha1.ExpiryWaiting, message: "team/b restores it", noPod: true,
		},
		"the guard does not answer": {
			plan: toExpire(), prepare: func(w *turnWorld) { w.mute[newest.Container] = true },
			outcome: contract.FDBTurnNotYet, reason: fdbv1alpha1.ExpiryWaiting, message: "no worker serves it", noPod: true,
		},
		"the API server refuses the pod": {
			plan: toExpire(), prepare: func(w *turnWorld) { w.refused = "exceeded quota" },
			outcome: contract.FDBTurnFailed, reason: fdbv1alpha1.ExpiryFailed, message: "exceeded quota",
		},
		"the plan has nothing to do": {
			plan:    contract.FDBExpiryPlan{Outcome: contract.FDBTurnNothing, Message: "all data are kept"},
			prepare: func(*turnWorld) {}, outcome: contract.FDBTurnNothing, reason: fdbv1alpha1.ExpiryNothing,
			message: "all data are kept", noPod: true,
		},
		"the plan cannot be carried out": {
			plan:    contract.FDBExpiryPlan{Outcome: contract.FDBTurnNotYet, Message: "the cluster is unreachable"},
			prepare: func(*turnWorld) {}, outcome: contract.FDBTurnNotYet, reason: fdbv1alpha1.ExpiryWaiting,
			message: "the cluster is unreachable", noPod: true,
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			w := newTurnWorld(test.plan)
			test.prepare(w)
			w.run().ends(t, expiring())
			assert.Equal(t, test.outcome, w.result.Outcome)
			assert.Equal(t, test.reason, w.result.Reason)
			assert.Contains(t, w.result.Message, test.message)
			assert.Equal(t, test.noPod, !w.happened("pod 1 expire new"), "%q", w.log)
		})
	}
}

func TestAPodWithoutResult(t *testing.T) {
	pod := func(w *turnWorld) *turnPod { return w.pods["lab-1785585600-1"] }
	tests := map[string]struct {
		prepare func(*turnWorld, *turnRun)
		message string
		minutes int // when the turn has ended, at the latest
	}{
		"is evicted": {
			prepare: func(w *turnWorld, r *turnRun) {
				r.After(2*time.Minute, func() { pod(w).Failed = "Evicted: the node was low on memory" })
			},
			message: "Evicted: the node was low on memory", minutes: 3,
		},
		"has ended without a word": {
			prepare: func(w *turnWorld, r *turnRun) { r.After(2*time.Minute, func() { pod(w).Ended = true }) },
			message: "has ended without a result", minutes: 3,
		},
		"is deleted by hand": {
			prepare: func(w *turnWorld, r *turnRun) { r.After(2*time.Minute, func() { w.terminate("lab-1785585600-1") }) },
			message: "is being deleted by somebody else", minutes: 3,
		},
		"is deleted by hand at once": {
			prepare: func(w *turnWorld, r *turnRun) {
				r.After(2*time.Minute, func() { delete(w.pods, "lab-1785585600-1") })
			},
			message: "was deleted before it left", minutes: 3,
		},
		"hangs": {
			prepare: func(*turnWorld, *turnRun) {},
			message: "the pod was stopped at its limit of 1h0m0s", minutes: 61,
		},
		"has no image": {
			prepare: func(w *turnWorld, r *turnRun) {
				r.After(time.Minute, func() { pod(w).Started, pod(w).Waiting = false, "ImagePullBackOff: no such image" })
			},
			message: "the pod was stopped at its limit of 15m0s: it waited for ImagePullBackOff", minutes: 17,
		},
		"hangs, and the worker has another limit": {
			prepare: func(*turnWorld, *turnRun) {}, message: "the pod was stopped at its limit of 10m0s", minutes: 11,
		},
	}
	for title, test := range tests {
		t.Run("that "+title, func(t *testing.T) {
			w := newTurnWorld(toExpire(older))
			if test.minutes == 11 {
				w.options = call.Options{FDBExpiryTimeout: 10 * time.Minute}
			}
			r := w.run()
			test.prepare(w, r)
			r.ends(t, expiring())
			assert.Equal(t, contract.FDBTurnFailed, w.result.Outcome)
			assert.Equal(t, fdbv1alpha1.ExpiryFailed, w.result.Reason)
			assert.Contains(t, w.result.Message, test.message)
			assert.LessOrEqual(t, w.at["ended Failed"], time.Duration(test.minutes)*time.Minute)
			assert.False(t, w.happened("delete old"), "nothing is deleted when it is not known what is left")

			// The next turn is like any other.
			w.reported, w.log, w.results[1] = 0, nil, expiredTo(40, 29)
			next := expiring()
			next.Turn++
			w.run().ends(t, next)
			assert.Equal(t, contract.FDBTurnDone, w.result.Outcome)
		})
	}
}

func TestTheEndIsReportedWhenThePodIsReallyGone(t *testing.T) {
	w := newTurnWorld(toExpire())
	w.results[1], w.lingers = expiredTo(40, 29), -1
	r := w.run()
	r.After(3*time.Hour, func() { r.SetContinueAsNewSuggested(true) })
	next := r.goesOn(t, expiring())
	assert.Equal(t, []string{"expire new", "pod 1 expire new", "remove lab-1785585600-1", "closing", "release new"}, w.log,
		"others may have what the pod, which has ended, does not touch any more")
	require.NotNil(t, next.Carried)
	assert.InDelta(t, 12, w.closings, 1, "the queue may have been lost meanwhile")

	r = w.run()
	r.After(26*time.Hour, func() { delete(w.pods, "lab-1785585600-1") })
	r.ends(t, next)
	assert.Equal(t, []string{"result Done Expired", "ended Done"}, w.log[5:], "reported once, as it was found before")
	assert.InDelta(t, 26*time.Hour, w.at["ended Done"], float64(time.Minute))
}

func TestAPodOfAnEarlierTurnIsWaitedFor(t *testing.T) {
	leftover := func(w *turnWorld, name string, ends time.Duration) {
		w.pods[name] = &turnPod{
			FDBPodView: contract.FDBPodView{Name: name, Found: true, Started: true, Created: turnStart.Add(-10 * time.Minute).Unix()},
			ends:       turnStart.Add(ends), result: expiredTo(50, 40),
		}
	}
	with := func(plan contract.FDBExpiryPlan, name string) contract.FDBExpiryPlan {
		plan.Pods = []contract.FDBPodView{{Name: name, Found: true}}
		return plan
	}
	t.Run("one that runs is adopted, and what it leaves ignored", func(t *testing.T) {
		w := newTurnWorld(with(toExpire(), "lab-7-1"), toExpire())
		w.results[1] = expiredTo(40, 29)
		leftover(w, "lab-7-1", 20*time.Minute)
		w.run().ends(t, expiring())
		assert.Equal(t, []string{
			"expire new", "release new", "remove lab-7-1", "expire new", "pod 1 expire new", "remove lab-1785585600-1", "closing",
			"release new", "result Done Expired", "ended Done",
		}, w.log)
		assert.GreaterOrEqual(t, w.at["remove lab-7-1"], 20*time.Minute)
	})
	t.Run("one that hangs is stopped at its limit", func(t *testing.T) {
		w := newTurnWorld(with(toExpire(), "lab-7-1"), toExpire())
		w.results[1] = expiredTo(40, 29)
		leftover(w, "lab-7-1", 20*time.Hour)
		w.run().ends(t, expiring())
		assert.InDelta(t, 50*time.Minute, w.at["remove lab-7-1"], float64(time.Minute))
		assert.Equal(t, contract.FDBTurnDone, w.result.Outcome)
	})
	stuck := func(ended bool) *turnWorld {
		w := newTurnWorld(with(toExpire(), "lab-7-1"))
		leftover(w, "lab-7-1", 1000*time.Hour)
		w.pods["lab-7-1"].Terminating, w.pods["lab-7-1"].Ended = true, ended
		return w
	}
	t.Run("one in termination keeps no other from having a turn", func(t *testing.T) {
		w := stuck(false)
		r := w.run()
		r.After(time.Hour, func() { r.SetContinueAsNewSuggested(true) })
		next := r.goesOn(t, expiring())
		assert.Equal(t, []string{"expire new", "result NotYet Waiting", "closing"}, w.log)
		assert.Contains(t, w.result.Message, "pod lab-7-1 of an earlier turn is still terminating")
		assert.LessOrEqual(t, w.at["closing"], 2*time.Minute)
		assert.Equal(t, []contract.FDBPlace{newest}, next.Carried.Held, "its container may still run")
		delete(w.pods, "lab-7-1")
		w.run().ends(t, next)
		assert.Equal(t, []string{"release new", "ended NotYet"}, w.log[3:], "reported once")
	})
	t.Run("one in termination whose container has ended, as by a finalizer of somebody else, holds no data", func(t *testing.T) {
		w := stuck(true)
		r := w.run()
		r.After(time.Hour, func() { delete(w.pods, "lab-7-1") })
		r.ends(t, expiring())
		assert.Equal(t, []string{"expire new", "release new", "result NotYet Waiting", "closing", "ended NotYet"}, w.log)
		assert.Less(t, w.at["release new"], time.Minute)
	})
	t.Run("other pods again and again are not waited for without end", func(t *testing.T) {
		w := newTurnWorld(with(toExpire(), "lab-7-1"))
		r := w.run()
		w.lingers = 0
		again := w.plans[0]
		r.OnActivity(contract.PlanFDBExpiry.Name, mock.Anything, mock.Anything).Return(
			func(context.Context, contract.FDBExpiryStep) (contract.FDBExpiryPlan, error) {
				leftover(w, "lab-7-1", 0)
				return again, nil
			})
		r.ends(t, expiring())
		assert.Equal(t, contract.FDBTurnNotYet, w.result.Outcome)
		assert.Contains(t, w.result.Message, "keep appearing")
	})
	t.Run("the second pod of this turn, though its first would be recreated", func(t *testing.T) {
		w := newTurnWorld(toExpire())
		w.results[1] = expiredTo(40, 29)
		leftover(w, "lab-1785585600-2", 20*time.Minute)
		w.run().ends(t, expiring())
		assert.Equal(t, contract.FDBTurnDone, w.result.Outcome)
	})
	t.Run("the first pod of this turn is met", func(t *testing.T) {
		w := newTurnWorld(toExpire())
		leftover(w, "lab-1785585600-1", 20*time.Minute)
		w.run().ends(t, expiring())
		assert.Equal(t, contract.FDBTurnDone, w.result.Outcome)
		assert.False(t, w.happened("pod 1 expire new"), "nothing is done twice")
	})
	t.Run("the first pod of this turn, though there is nothing to be done any more", func(t *testing.T) {
		w := newTurnWorld(contract.FDBExpiryPlan{Outcome: contract.FDBTurnNothing, Message: "all data are kept"})
		leftover(w, "lab-1785585600-1", 20*time.Minute)
		w.run().ends(t, expiring())
		assert.Equal(t, contract.FDBTurnNothing, w.result.Outcome)
		assert.True(t, w.happened("remove lab-1785585600-1"))
	})
}

func TestNoBackupGetsTheResultOfAnObjectThatIsGone(t *testing.T) {
	w := newTurnWorld(contract.FDBExpiryPlan{Outcome: contract.FDBTurnGone, Message: "it is gone"})
	r := w.run()
	r.ExecuteWorkflow(contract.KindFDBExpiry.Workflow, expiring())
	require.NoError(t, r.GetWorkflowError())
	assert.Equal(t, []string{"ended Gone"}, w.log, "but the queue, which drops it")
}

// A pod on a lost node may take days to go away: the failure is reported before.
func TestAFailureIsReportedBeforeThePodIsGone(t *testing.T) {
	w := newTurnWorld(toExpire())
	w.lingers = -1
	r := w.run()
	r.After(time.Minute, func() { w.pods["lab-1785585600-1"].Failed = "its node is lost" })
	r.After(3*time.Hour, func() { r.SetContinueAsNewSuggested(true) })
	next := r.goesOn(t, expiring())
	assert.Equal(t, []string{"expire new", "pod 1 expire new", "remove lab-1785585600-1", "result Failed Failed", "closing"}, w.log)
	assert.LessOrEqual(t, w.at["result Failed Failed"], 3*time.Minute)
	assert.LessOrEqual(t, w.result.At, turnStart.Add(3*time.Minute).Unix())
	r = w.run()
	r.After(26*time.Hour, func() { delete(w.pods, "lab-1785585600-1") })
	r.ends(t, next)
	assert.Equal(t, []string{"release new", "ended Failed"}, w.log[5:], "what is known is not reported again")
}

func TestACancelledTurnLeavesNothingBehind(t *testing.T) {
	tests := map[string]struct {
		after   time.Duration
		prepare func(*turnWorld)
		pod     bool
	}{
		"while its pod runs":           {after: 30 * time.Second, prepare: func(*turnWorld) {}, pod: true},
		"while the pod terminates":     {after: 62 * time.Second, prepare: func(w *turnWorld) { w.lingers = time.Hour }, pod: true},
		"while it waits for the guard": {after: time.Second, prepare: func(w *turnWorld) { w.mute[newest.Container] = true }},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			w := newTurnWorld(toExpire())
			test.prepare(w)
			r := w.run()
			r.RegisterDelayedCallback(r.CancelWorkflow, test.after)
			r.RegisterDelayedCallback(func() { delete(w.mute, newest.Container) }, test.after+time.Second)
			r.ExecuteWorkflow(contract.KindFDBExpiry.Workflow, expiring())
			var cancelled *temporal.CanceledError
			require.ErrorAs(t, r.GetWorkflowError(), &cancelled)
			assert.Equal(t, test.pod, w.happened("remove lab-1785585600-1"))
			end := []string{"release new", "result Failed Failed", "ended Failed"}
			if test.pod {
				end = []string{"result Failed Failed", "closing", "release new", "ended Failed"}
			}
			assert.Equal(t, end, w.log[len(w.log)-len(end):])
			assert.Contains(t, w.result.Message, "cancelled")
		})
	}
}
