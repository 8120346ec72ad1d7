package queue_test

import (
	"encoding/json"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/workflowtest/sample"
)

// payloadLimit is the limit of Temporal for one payload; it warns from a quarter of it.
const (
	payloadLimit = 2 << 20
	payloadWarns = payloadLimit / 4
)

func size(t testing.TB, payload any) int {
	t.Helper()
	data, err := json.Marshal(payload)
	require.NoError(t, err)
	return len(data)
}

// crowded returns a world in which so many wait: in one namespace two fifths of them, and the others in hundreds.
func crowded(many, limit int) *world {
	w := newWorld(limit, 0)
	w.hold, w.takes, w.vary = false, 20, 40
	w.doing(0, func() {
		for n := range many {
			namespace := "huge"
			if n%5 > 1 {
				namespace = fmt.Sprintf("tenant%03d", n%397)
			}
			w.creates(backups, n%contract.TurnLanes, fmt.Sprintf("%s-nightly-of-database-%05d", namespace, n), true)
		}
		w.sweeps()
	})
	return w
}

// TestTenThousandWait: no payload comes near to Temporal's limit, over runs that continue as new under load.
func TestTenThousandWait(t *testing.T) {
	crowd := 2_000
	if sample.Whole() {
		crowd = 10_000
	}
	w := crowded(crowd, 20)
	largest := map[string]int{}
	for at := 60; at < 600; at += 180 {
		w.doing(at, func() { w.roll = true })
		w.doing(at+60, func() {
			largest["carried"] = max(largest["carried"], size(t, w.last))
			largest["listed"] = max(largest["listed"], size(t, w.lists(contract.TurnsWanted{})))
			largest["shown"] = max(largest["shown"], size(t, w.state()))
			for lane := range contract.TurnLanes {
				carried := 0
				for _, member := range w.last.Pools[backups].Members {
					if member.Lane == lane {
						carried++
					}
				}
				assert.LessOrEqual(t, carried, contract.MaxTurnsCarried)
			}
		})
	}
	plays(t, w, 11*time.Minute)
	assert.Len(t, w.began, 4, "it continues each time")
	assert.Greater(t, len(w.given), 200)
	for what, bytes := range largest {
		t.Logf("largest payload %s: %d bytes", what, bytes)
		assert.Less(t, bytes, payloadLimit, what)
	}
	assert.Less(t, largest["listed"], payloadWarns)
}

// TestNewsOfTwoHundred: each of them has its turn.
func TestNewsOfTwoHundred(t *testing.T) {
	w := newWorld(contract.MaxTurnNews+50, 0)
	w.doing(1, func() {
		for n := range contract.MaxTurnNews + 50 {
			w.creates(backups, 0, fmt.Sprintf("n%d-1", n), true)
		}
		w.sweeps()
	})
	w.doing(60, func() {
		var news contract.TurnNews
		for _, o := range w.objects {
			o.active, o.flow = false, false
			if len(news.Ended) < contract.MaxTurnNews {
				news.Ended = append(news.Ended, o.key)
			}
		}
		w.send = append(w.send, news)
	})
	w.doing(61, func() { assert.Len(t, w.state().Pools[0].Turns, 50) })
	plays(t, w, time.Minute+30*time.Second)
	assert.Len(t, w.given, contract.MaxTurnNews+50)
}

// TestItContinuesAlthoughNewsAlwaysCome: under constant load something is always due.
func TestItContinuesAlthoughNewsAlwaysCome(t *testing.T) {
	w := newWorld(2, 0)
	w.hold, w.takes, w.vary = false, 2, 3
	for at := range 300 {
		w.doing(at, func() { w.creates(backups, 0, fmt.Sprintf("a%d-1", at), false) })
	}
	for _, at := range []int{30, 90, 150} {
		w.at(time.Duration(at)*time.Second+500*time.Millisecond, func() { w.roll = true })
		w.doing(at+3, func() { assert.Len(t, w.began, 1+(at+30)/60) })
	}
	plays(t, w, 301*time.Second)
	assert.Greater(t, len(w.given), 100)
}

// BenchmarkATurn prints what a turn costs the queue while so many wait, with all that its world does in the same process.
func BenchmarkATurn(b *testing.B) {
	for _, waiting := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("%d wait", waiting), func(b *testing.B) {
			turns, before := 0, cpu(b)
			for b.Loop() {
				w := crowded(waiting, 20)
				w.at(10*time.Minute, func() {
					for _, o := range w.objects {
						w.leaves(o, true)
					}
					w.limits(0, 0)
				})
				require.NoError(b, w.play())
				turns += len(w.given)
			}
			b.ReportMetric(float64((cpu(b)-before).Microseconds())/float64(turns), "µs-cpu/turn")
		})
	}
}

func cpu(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
