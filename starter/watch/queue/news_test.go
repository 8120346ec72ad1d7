package queue

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/fake"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/lifecycle"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/workflows/connect"
	"holdfast.dev/holdfast/workflows/contract"
)

// lead runs news of a leading watcher while do is called, and returns what was sent.
func lead(t *testing.T, turns *recordedTurns, objects []client.Object, do func(*News)) []contract.TurnNews {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		world := fake.New(t, objects...)
		news := NewNews(&News{Turns: turns, Client: world.Client, Log: zap.NewNop()})
		news.Request(t.Context(), contract.PoolBackups, fake.NAB("before")) // it does not lead yet
		news.PolicyWritten(policy.Queue{MaxActive: 2}, "7")
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			news.Run(ctx)
		}()
		time.Sleep(newsPace + time.Millisecond)
		do(news)
		time.Sleep(newsPace + time.Millisecond)
		stop()
		<-done
	})
	return turns.Sent()
}

func names(requests []contract.TurnRequest) (names []string) {
	for _, request := range requests {
		names = append(names, request.Name)
	}
	return names
}

func TestALeaderRequestsTurnsForAllThatWait(t *testing.T) {
	waits, done, going := fake.NAB("waits"), fake.NAB("done"), fake.NAB("going")
	done.Status.Phase = oadpv1alpha1.NonAdminPhaseCreated
	going.Spec.DeleteBackup = true
	restored := fake.NAR("restored", "nightly") // its pool has no limit
	sent := lead(t, &recordedTurns{}, []client.Object{waits, done, going, restored}, func(*News) {})
	if assert.Len(t, sent, 1) {
		assert.Equal(t, []string{"waits"}, names(sent[0].Requests))
		assert.Equal(t, "7", sent[0].Policy)
		assert.True(t, sent[0].Leads, "the ends that the last leader has not sent are in the objects")
	}
}

// inLine is a NonAdminBackup that says that it waits for its turn.
func inLine(name string) *oadpv1alpha1.NonAdminBackup {
	nab := fake.NAB(name)
	lifecycle.ApplyVerdict(nab, check.Verdict{Accepted: true, Reason: oadpv1alpha1.ReasonBackupAccepted}, "made", fake.OADPNamespace)
	lifecycle.ApplyWaiting(nab)
	return nab
}

// A queue that somebody has terminated while objects wait is started again: nothing may end meanwhile that would be news.
func TestAQueueThatDoesNotRunIsStarted(t *testing.T) {
	turns := &recordedTurns{Failure: connect.ErrNotRunning}
	sent := lead(t, turns, nil, func(*News) { time.Sleep(keepInterval) })
	if assert.Len(t, sent, 2, "the leader's first news, and these") {
		assert.Equal(t, contract.TurnNews{Policy: "7"}, sent[1])
		assert.True(t, turns.Started)
	}

	s := newStation(t, inLine("waits"))
	s.Turns = turns
	changes, err := s.ofWaiting(t.Context())
	require.NoError(t, err)
	assert.Empty(t, changes)
}

func TestManyNewsAreOneSignal(t *testing.T) {
	turns := &recordedTurns{}
	sent := lead(t, turns, nil, func(news *News) {
		turns.Block(time.Second) // the signal that is under way
		news.Request(t.Context(), contract.PoolBackups, fake.NAB("first"))
		synctest.Wait()
		for n := range contract.MaxTurnNews + 5 {
			news.Request(t.Context(), contract.PoolBackups, fake.NAB(fmt.Sprintf("n%03d", n)))
			news.Request(t.Context(), contract.PoolBackups, fake.NAB(fmt.Sprintf("n%03d", n))) // again
		}
		news.Request(t.Context(), contract.PoolRestores, fake.NAR("no-limit", "nightly"))
		news.NotNeeded(contract.PoolBackups, fake.NAB("n000"))
		time.Sleep(time.Minute)
	})
	counts := [][2]int{}
	for _, each := range sent {
		counts = append(counts, [2]int{len(each.Requests), len(each.Ended)})
	}
	most := contract.MaxTurnNews
	assert.Equal(t, [][2]int{{0, 0}, {1, 0}, {most - 1, 1}, {5, 0}}, counts, "the policy, and then what came meanwhile")
}

func TestNewsAreSentUntilTheyArrive(t *testing.T) {
	turns := &recordedTurns{Away: 4}
	sent := lead(t, turns, nil, func(news *News) {
		time.Sleep(time.Minute)
		news.Request(t.Context(), contract.PoolBackups, fake.NAB("nightly"))
	})
	assert.Len(t, sent, 2)
	assert.True(t, turns.Started)
}

func TestARequestIsRepeatedAfterMinutes(t *testing.T) {
	sent := lead(t, &recordedTurns{}, nil, func(news *News) {
		for range 10 {
			news.Request(t.Context(), contract.PoolBackups, fake.NAB("nightly"))
			time.Sleep(time.Minute)
		}
	})
	assert.Len(t, sent, 1+3, "at minutes 0, 4 and 8")
}

// TestSignalsAreApart: what comes meanwhile goes with the next one.
func TestSignalsAreApart(t *testing.T) {
	sent := lead(t, &recordedTurns{}, nil, func(news *News) {
		time.Sleep(time.Second)
		for n := range 40 {
			news.Request(t.Context(), contract.PoolBackups, fake.NAB(fmt.Sprintf("n%03d", n)))
			time.Sleep(newsPace / 10)
		}
	})
	all := []string{}
	for _, each := range sent {
		all = append(all, names(each.Requests)...)
	}
	assert.Len(t, all, 40)
	assert.InDelta(t, 1+newsAtOnce+4, len(sent), 1, "the policy, the first requests at once, and then one signal for ten")
}

// TestWhoBeginsToWaitRequestsAgain: the turn of the request before may have come when it could not be used.
func TestWhoBeginsToWaitRequestsAgain(t *testing.T) {
	sent := lead(t, &recordedTurns{}, nil, func(news *News) {
		for range 3 {
			news.Request(t.Context(), contract.PoolBackups, fake.NAB("nightly"))
			time.Sleep(time.Second)
		}
		news.BeganToWait(t.Context(), contract.PoolBackups, fake.NAB("nightly"))
	})
	assert.Len(t, sent, 1+1+1)
}

func TestTheEndsOfTheLastSecond(t *testing.T) {
	lead(t, &recordedTurns{}, nil, func(news *News) {
		for n := range 10 {
			news.NotNeeded(contract.PoolBackups, fake.NAB("nightly"))
			assert.Equal(t, min(n+1, 6), news.Ends(contract.PoolBackups))
			time.Sleep(200 * time.Millisecond)
		}
		assert.Zero(t, news.Ends(contract.PoolRestores))
		for range 6 {
			news.NotNeeded(contract.PoolBackups, fake.NAB("nightly"))
		}
		say := func(pool contract.Pool) (count int) {
			for range 20 {
				if news.Announce(pool) {
					count++
				}
			}
			return count
		}
		assert.Equal(t, 1, say(contract.PoolBackups), "one for six that ended, or those would be delayed")
		assert.Equal(t, 20, say(contract.PoolRestores), "there is room")
		assert.False(t, NewNews(&News{}).Announce(contract.PoolRestores), "another watcher leads")
		time.Sleep(time.Second + time.Millisecond)
		assert.Zero(t, news.Ends(contract.PoolBackups))
	})
}

// TestAnEndWaitsForOthers: but not longer than a request.
func TestAnEndWaitsForOthers(t *testing.T) {
	at := func(do func(*News)) (sent int) {
		turns := &recordedTurns{}
		lead(t, turns, nil, func(news *News) {
			time.Sleep(time.Second)
			news.NotNeeded(contract.PoolBackups, fake.NAB("old"))
			time.Sleep(newsPace / 2)
			do(news)
			synctest.Wait()
			sent = len(turns.Sent()) - 1
		})
		return sent
	}
	assert.Equal(t, 0, at(func(news *News) { news.NotNeeded(contract.PoolBackups, fake.NAB("older")) }))
	assert.Equal(t, 1, at(func(news *News) { news.Request(t.Context(), contract.PoolBackups, fake.NAB("new")) }))
	assert.Equal(t, 1, at(func(*News) { time.Sleep(newsPace) }))
}

func TestWithoutALimitNothingIsSentButThePolicy(t *testing.T) {
	turns := &recordedTurns{Failure: connect.ErrNotRunning}
	sent := lead(t, turns, nil, func(news *News) {
		news.PolicyWritten(policy.Queue{}, "8")
		time.Sleep(newsPace + time.Millisecond)
		news.Request(t.Context(), contract.PoolBackups, fake.NAB("nightly"))
		news.NotNeeded(contract.PoolBackups, fake.NAB("nightly"))
		time.Sleep(keepInterval)
	})
	if assert.Len(t, sent, 2) {
		assert.Equal(t, contract.TurnNews{Policy: "8"}, sent[1])
	}
	assert.False(t, turns.Started, "a queue that does not run needs no news")
}

// TestWhoSaysThatItWaitsNeedsATurn: the key was removed from the policy, and only the watcher was restarted. Workers keep the limit.
func TestWhoSaysThatItWaitsNeedsATurn(t *testing.T) {
	turns := &recordedTurns{}
	nab := inLine("waits")
	sent := lead(t, turns, nil, func(news *News) {
		news.PolicyWritten(policy.Queue{}, "8")
		time.Sleep(newsPace + time.Millisecond)
		news.Request(t.Context(), contract.PoolBackups, nab)
		time.Sleep(newsPace)
		synctest.Wait()
		assert.True(t, turns.Started)
		news.NotNeeded(contract.PoolBackups, nab)
	})
	if assert.Len(t, sent, 4) {
		assert.Equal(t, []string{"waits"}, names(sent[2].Requests))
		assert.Len(t, sent[3].Ended, 1)
	}
}

func TestARequestSaysLaneAndWeight(t *testing.T) {
	team := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fake.Namespace, Labels: map[string]string{"tier": "gold"}}}
	run := fake.NAB("run")
	run.Labels = map[string]string{holdfastv1alpha1.LabelPlan: "nightly"}
	sent := lead(t, &recordedTurns{}, []client.Object{team}, func(news *News) {
		news.PolicyWritten(policy.Queue{MaxActive: 1, Weights: []policy.Weight{
			{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}, Weight: 3},
		}}, "8")
		time.Sleep(newsPace + time.Millisecond)
		news.Request(t.Context(), contract.PoolBackups, run)
	})
	if last := sent[len(sent)-1]; assert.Len(t, last.Requests, 1) {
		assert.Equal(t, contract.LanePlan, last.Requests[0].Lane)
		assert.Equal(t, 3, last.Requests[0].Weight)
	}
}

func TestPositionsOfThoseThatWait(t *testing.T) {
	at := func(name string, second, position int) client.Object {
		nab := fake.NAB(name)
		nab.CreationTimestamp = metav1.Unix(int64(1000+second), 0)
		if position > 0 {
			nab.Status.QueueInfo = &oadpv1alpha1.QueueInfo{EstimatedQueuePosition: position}
		}
		return nab
	}
	uid := func(name string) string { return string(fake.NAB(name).UID) }
	changes := inOrder(kinds[0], []client.Object{at("beyond", 9, 0), at("second", 1, 4), at("first", 2, 5), at("older", 3, 0)},
		[]string{uid("first"), uid("second")}, 3)
	got := map[string]int{}
	for _, change := range changes {
		got[change.object.GetName()] = change.position
	}
	assert.Equal(t, map[string]int{"first": 4, "second": 5, "older": 6, "beyond": 7}, got)
	assert.Empty(t, inOrder(kinds[0], []client.Object{at("first", 2, 4)}, []string{uid("first")}, 3), "it shows that already")
}
