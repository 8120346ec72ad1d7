package controllers

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"holdfast.dev/holdfast/workflows/contract"
)

// follower is a kind of a watcher that follows, with objects of which one view is made.
type follower struct {
	*Kind[*corev1.ConfigMap]
	*testing.T

	workflows *told
	view      View
	follows   bool
	// before is called each time that an object is judged.
	before func()
}

func newFollower(t *testing.T, view View) *follower {
	f := &follower{T: t, view: view, follows: true, before: func() {}}
	f.Kind, f.workflows = kindOf(&f.view)
	f.Follows = func() bool { return f.follows }
	f.Judge = func(context.Context, client.Reader, contract.ObjectRef) (View, error) {
		f.before()
		return f.view, nil
	}
	return f
}

// handled handles a request once, and returns when it is to be handled again.
func (f *follower) handled(request Request) time.Duration {
	f.Helper()
	result, err := f.Reconcile(f.Context(), request)
	require.NoError(f, err)
	return result.RequeueAfter
}

// signalled handles a request as the workqueue would, for as long as it is to be handled again soon, and returns what was signalled
// and when.
func (f *follower) signalled(request Request) (what []string, after time.Duration) {
	f.Helper()
	began := time.Now()
	f.workflows.what = nil
	for again := f.handled(request); again > 0 && again <= headStart; again = f.handled(request) {
		time.Sleep(again)
	}
	return f.workflows.what, time.Since(began)
}

// event is signalled, of an event.
func (f *follower) event(request Request) (what []string, after time.Duration) {
	f.Helper()
	f.Add(&recordingQueue{}, request)
	return f.signalled(request)
}

var nightly = Request{Namespace: "team", Name: "nightly", UID: "1"}

func TestAWatcherThatFollowsLeavesTheLeaderAHeadStart(t *testing.T) {
	for title, test := range map[string]struct {
		view    View
		follows bool
		want    []string
		after   time.Duration
	}{
		"the leader has not had it served": {view: View{Found: true, Due: true}, follows: true, want: []string{"start"}, after: headStart},
		"it has":                           {view: View{Found: true}, follows: true, after: headStart},
		"deleted meanwhile":                {view: View{}, follows: true, want: []string{"deleted"}, after: headStart},
		"this watcher leads":               {view: View{Found: true, Due: true}, want: []string{"start"}},
		"its workflow waits, and it leads": {view: View{Found: true, Due: true, Waits: true}, want: []string{"start"}},
		"its workflow waits":               {view: View{Found: true, Due: true, Waits: true}, follows: true, after: headStart},
	} {
		t.Run(title, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFollower(t, test.view)
				f.follows = test.follows
				what, after := f.event(nightly)
				assert.Equal(t, test.want, what)
				assert.Equal(t, test.after, after)
				assert.Empty(t, f.arrivals.first)
			})
		})
	}
}

func TestAWatcherWithoutAnotherIsNeverLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t, View{Found: true, Due: true})
		f.Follows = nil
		what, after := f.event(nightly)
		assert.Equal(t, []string{"start"}, what)
		assert.Zero(t, after)
	})
}

// The end of a backup still comes before its neighbours' progress when its head start is over.
func TestAnEventKeepsItsPriorityOverItsHeadStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t, View{Found: true, Due: true})
		f.Add(&recordingQueue{}, nightly)
		result, err := f.Reconcile(t.Context(), nightly)
		require.NoError(t, err)
		assert.Equal(t, reconcile.Result{RequeueAfter: headStart}, f.ranked(nightly, result, err), "its own")
		time.Sleep(headStart)
		result, err = f.Reconcile(t.Context(), nightly)
		require.NoError(t, err)
		assert.Equal(t, reconcile.Result{RequeueAfter: f.ResyncInterval, Priority: new(handler.LowPriority)}, f.ranked(nightly, result, err))
	})
}

// The event that waits for its head start decides, not those that follow it.
func TestAHeadStartIsNotExtended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t, View{Found: true, Due: true})
		began := time.Now()
		f.Add(&recordingQueue{}, nightly)
		for f.handled(nightly) > 0 && len(f.workflows.what) == 0 {
			time.Sleep(time.Second)
			f.Add(&recordingQueue{}, nightly)
		}
		assert.Equal(t, headStart, time.Since(began))
	})
}

// What every watcher signals whatever its cache says, and what no event has caused, is signalled at once: a resync, a recovery of
// Temporal, a new policy, an object whose turn has come.
func TestOnlyWhatTheCacheCanAcknowledgeIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t, View{Found: true, Due: true, Waits: true})
		what, after := f.signalled(nightly)
		assert.Equal(t, []string{"start"}, what, "a resync")
		assert.Zero(t, after)

		f.addOwn(&recordingQueue{}, nightly)
		what, after = f.signalled(nightly)
		assert.Equal(t, []string{"start"}, what, "a request of its own")
		assert.Zero(t, after)

		f.Add(&recordingQueue{}, nightly)
		f.addOwn(&recordingQueue{}, nightly)
		what, after = f.signalled(nightly)
		assert.Equal(t, []string{"start"}, what, "both")
		assert.Zero(t, after)

		what, after = f.event(nightly.Forced(true))
		assert.Equal(t, []string{"start"}, what, "a forced one")
		assert.Zero(t, after)

		f.Judge = nil
		what, after = f.event(nightly)
		assert.Equal(t, []string{"changed"}, what, "one of a kind that is not judged")
		assert.Zero(t, after)
		assert.Empty(t, f.left.since)
	})
}

func TestWhoLeadsJudgesWhatItHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t, View{Found: true, Due: true, Waits: true})
		f.event(nightly)
		gone := nightly
		gone.Name, gone.UID = "gone", "2"
		f.event(gone)
		f.view = View{}
		what, _ := f.event(gone)
		assert.Equal(t, []string{"deleted"}, what)

		f.view, f.follows = View{Found: true, Due: true, Waits: true}, false
		f.Lead(t.Context())
		require.Equal(t, []Request{nightly}, f.Requested(), "nothing is kept of what is gone")
		f.Lead(t.Context())
		require.Empty(t, f.Requested(), "once")
		what, after := f.event(nightly)
		assert.Equal(t, []string{"start"}, what)
		assert.Zero(t, after)
	})
}

// An object that is judged while this watcher begins to lead must not be left for itself.
func TestNothingIsLeftToOneself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t, View{Found: true, Due: true, Waits: true})
		f.before = func() {
			f.follows = false
			f.Lead(t.Context())
		}
		what, _ := f.event(nightly)
		assert.Equal(t, []string{"start"}, what)
		assert.Empty(t, f.left.since)
	})
}

// Two checks of who leads frame what is left: the first one saw another leader, the second one does not.
func TestWhatIsLeftAsTheTermBeginsIsSignalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t, View{Found: true, Due: true, Waits: true})
		f.before = func() {
			leads := false
			f.Follows = func() bool {
				defer func() { leads = true }()
				return !leads
			}
		}
		what, _ := f.event(nightly)
		assert.Equal(t, []string{"start"}, what)
		assert.Empty(t, f.left.since)
	})
}

// A leader that renews its lease may not reach Temporal: an object is not left to it for ever.
func TestNothingIsLeftForLongerThanAResyncInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t, View{Found: true, Due: true, Waits: true})
		began, signals := time.Now(), 0
		for time.Since(began) < 2*f.ResyncInterval+time.Minute {
			what, _ := f.event(nightly) // Velero's progress, every 20 seconds
			signals += len(what)
			time.Sleep(15 * time.Second)
		}
		assert.Equal(t, 2, signals)

		f.event(nightly)
		assert.Equal(t, f.ResyncInterval, f.handled(nightly), "without a further event it is a resync's")
	})
}

// Thousands of new objects start in turns: they are not started twice because the last ones wait for longer than the head start.
func TestAWatcherThatFollowsStartsNothingWhileTheLeaderDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t, View{Found: true, Due: true, Unstarted: true})
		began := time.Now()
		f.before = func() {
			if time.Since(began) <= 6*headStart {
				f.Started(of("another", 1), true)
			}
		}
		what, after := f.event(nightly)
		assert.Equal(t, []string{"start"}, what)
		assert.Equal(t, 7*headStart, after)
		assert.Empty(t, f.left.since)

		began = time.Now()
		f.before = func() { f.Started(of("another", 1), true) }
		other := nightly
		other.UID = "2"
		what, after = f.event(other)
		assert.Equal(t, []string{"start"}, what, "the leader starts others, for ever")
		assert.Equal(t, headStart+f.ResyncInterval, after)
	})
}

// What it has started itself, and what an object does that has started before, does not show that the leader works.
func TestAWatcherThatFollowsStartsAllIfTheLeaderDoesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t, View{Found: true, Due: true, Unstarted: true})
		f.before = func() { f.Started(of("old", 1), false) }
		for i := range 3 {
			what, after := f.event(of("team", i))
			assert.Equal(t, []string{"start"}, what)
			assert.Equal(t, headStart, after)
			f.Started(of("team", i), true)
		}
		_, _ = f.event(of("slow", 1))
		time.Sleep(startPatience)
		require.Empty(t, f.starts.due())
		f.Started(of("slow", 1), true)
		assert.False(t, f.starts.othersStart(nightly, headStart), "nor what it started that took long")
	})
}

// Of thousands, those that wait for their turn here have no second head start.
func TestAWatcherThatFollowsHandsStartsOverAsALeaderDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t, View{Found: true, Due: true, Unstarted: true})
		go func() { assert.NoError(t, f.handOver(t.Context())) }()
		const objects = 3 * startsAtATime
		for i := range objects {
			f.Add(&recordingQueue{}, of("team", i))
			require.Equal(t, headStart, f.handled(of("team", i)))
		}
		time.Sleep(headStart)
		for i := range objects {
			f.handled(of("team", i))
		}
		f.Started(of("another", 1), true) // by somebody else: what has its turn here goes on
		for started := 0; started < objects; started++ {
			require.GreaterOrEqual(t, len(f.workflows.what), min(objects, started+1))
			f.Started(of("team", started), true)
			synctest.Wait()
			for _, request := range f.Requested() {
				f.addOwn(&recordingQueue{}, request)
				assert.Equal(t, f.ResyncInterval, f.handled(request))
			}
		}
		assert.Len(t, f.workflows.what, objects)
	})
}

// The start is an event of the object's own, with a head start of its own.
func TestTheEventsOfAnObjectThatWasLeftAreLeftToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t, View{Found: true, Due: true, Unstarted: true})
		f.Add(&recordingQueue{}, nightly)
		require.Equal(t, headStart, f.handled(nightly))
		time.Sleep(headStart)
		f.Started(of("another", 1), true)
		require.Equal(t, headStart, f.handled(nightly), "others start")
		f.view.Unstarted = false
		f.Add(&recordingQueue{}, nightly)
		assert.Equal(t, headStart, f.handled(nightly))
		assert.Empty(t, f.workflows.what)
	})
}

func TestAHeadStartIsNotMeasured(t *testing.T) {
	f := newFollower(t, View{})
	came := time.Now().Add(-headStart - time.Second)
	event := arrival{at: came, event: true}
	assert.Equal(t, came.Add(headStart), f.latencySince(nightly, event))
	assert.Equal(t, came, f.latencySince(nightly, arrival{at: came}))
	assert.Equal(t, came, f.latencySince(nightly.Forced(true), event))
	f.follows = false
	assert.Equal(t, came, f.latencySince(nightly, event))
}

// While Temporal is away an event is retried: its head start is over, and what the leader has had served since is not repeated.
func TestARetryHasNoSecondHeadStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t, View{Found: true, Due: true})
		f.Add(&recordingQueue{}, nightly)
		time.Sleep(f.handled(nightly))
		f.workflows.err = errAway
		_, err := f.Reconcile(t.Context(), nightly)
		require.ErrorIs(t, err, errAway)
		f.workflows.err = nil
		what, after := f.signalled(nightly)
		assert.Equal(t, []string{"start"}, what)
		assert.Zero(t, after)
	})
}

// What is left is no more than what has something to do: at a start all settled objects are judged.
func TestSettledObjectsAreNotRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t, View{Found: true, Waits: true})
		for i := range 100 {
			request := nightly
			request.UID = fmt.Sprint(i)
			what, _ := f.event(request)
			assert.Empty(t, what)
		}
		assert.Empty(t, f.left.since)
	})
}
