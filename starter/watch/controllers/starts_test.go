package controllers

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func of(namespace string, i int) Request {
	return Request{Namespace: namespace, Name: fmt.Sprint(i), UID: fmt.Sprint(i)}
}

// full are starts of which no more may be signalled over.
func full(t *testing.T) *starts {
	t.Helper()
	b := newStarts()
	for i := range startsAtATime {
		require.True(t, b.admit(of("first", i)))
	}
	return b
}

func TestStartsAreHandedOverAsOthersBegin(t *testing.T) {
	b := full(t)
	assert.True(t, b.admit(of("first", 0)), "it was signalled over before")
	assert.False(t, b.admit(of("next", 1)))
	assert.False(t, b.admit(of("next", 1).Forced(true)), "it waits already")
	assert.Empty(t, b.due())
	b.started(of("first", 7), true)
	assert.Len(t, b.moved, 1)
	assert.False(t, b.admit(of("late", 1)), "no one overtakes what waits")
	assert.Equal(t, []Request{of("next", 1).Forced(true)}, b.due())
	assert.True(t, b.admit(of("next", 1)), "its turn has come")
	assert.Empty(t, b.due())
	b.started(of("next", 1), true)
	b.started(of("next", 1), true)
	assert.Equal(t, []Request{of("late", 1)}, b.due())
}

// The queue before Velero starts an object that waits here, and Velero may have finished before its status is in the cache.
func TestWhatWaitsAndHasStartedIsDueAtOnce(t *testing.T) {
	b := full(t)
	for i := range 3 {
		require.False(t, b.admit(of("next", i)))
	}
	require.False(t, b.admit(of("other", 1).Forced(true)))
	b.started(of("next", 1), true)
	b.started(of("other", 1), true)
	assert.Equal(t, []Request{of("next", 1), of("other", 1).Forced(true)}, b.due())
	assert.Empty(t, b.due(), "nobody else")
	b.left(of("next", 0)) // judged now
	b.started(of("first", 0), true)
	b.started(of("first", 1), true)
	assert.Equal(t, []Request{of("next", 2)}, b.due())
	assert.Empty(t, b.turns)
	assert.Empty(t, b.waiting)
	assert.Empty(t, b.forced)
}

// A tenant with thousands of new objects must not stand before one with a single one.
func TestTurnsToBeginGoRoundTheNamespaces(t *testing.T) {
	b := full(t)
	for i := range 1000 {
		require.False(t, b.admit(of("many", i)))
	}
	require.False(t, b.admit(of("few", 1)))
	for i := range 3 {
		b.started(of("first", i), true)
	}
	assert.Equal(t, []Request{of("many", 0), of("few", 1), of("many", 1)}, b.due())
}

// A worker that is away, or an object whose status cannot be written, keeps nobody from being signalled over.
func TestWhatDoesNotBeginIsWaitedForNoLongerThanThat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := full(t)
		require.False(t, b.admit(of("next", 1)))
		time.Sleep(startPatience - time.Second)
		assert.Empty(t, b.due())
		time.Sleep(time.Second)
		assert.Equal(t, []Request{of("next", 1)}, b.due())
		assert.True(t, b.admit(of("first", 0)), "and it may come again")
	})
}

// takes returns how long it takes until 100 objects of a tenant have started, each within a second, beside 4,000 of other
// namespaces that never begin.
func takes(attackers int) time.Duration {
	b := newStarts()
	begin := func(request Request) {
		if request.Namespace == "victim" {
			time.AfterFunc(time.Second, func() { b.started(request, true) })
		}
	}
	ask := func(request Request) {
		if b.admit(request) {
			begin(request)
		}
	}
	for attacker := range attackers {
		for i := range 4000 / attackers {
			ask(of(fmt.Sprint("attacker-", attacker), i))
		}
	}
	for i := range 100 {
		ask(of("victim", i))
	}
	victims := func(request Request) bool { return request.Namespace == "victim" }
	for started := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		for _, request := range b.due() {
			begin(request)
		}
		b.mutex.Lock()
		begun := len(b.waiting["victim"]) == 0 && !slices.ContainsFunc(slices.Collect(maps.Keys(b.signalled)), victims)
		b.mutex.Unlock()
		if begun {
			return time.Since(started)
		}
	}
}

func TestWhatNeverBeginsTakesNoTurnFromOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		alone := takes(0)
		for _, attackers := range []int{1, 4, 16} {
			// Each namespace takes a turn once before it is known for what it is.
			bound := 2*alone + startPatience
			for met := 0; met < attackers; met += startsAtATime {
				bound += startPatience
			}
			assert.LessOrEqual(t, takes(attackers), bound, "beside %d namespaces", attackers)
		}
	})
}

func TestANamespaceIsLateAsLongAsItsObjectsAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := func() *starts {
			b := full(t)
			time.Sleep(startPatience)
			require.Empty(t, b.due())
			require.True(t, b.isLate("first"))
			return b
		}
		b := late()
		for i := range startsAtATime {
			require.True(t, b.isLate("first"))
			b.started(of("first", i), true)
		}
		assert.Empty(t, b.late, "its worker was away")

		b = late()
		for i := range startsAtATime {
			b.left(of("first", i))
		}
		require.Empty(t, b.due())
		assert.True(t, b.isLate("first"), "to delete them must not help")
		assert.Empty(t, b.late["first"].objects, "what is gone is not remembered")
		time.Sleep(lateLasts)
		require.Empty(t, b.due())
		assert.Empty(t, b.late)
	})
}
