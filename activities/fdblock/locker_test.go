package fdblock

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// process is a worker with its connection to the database.
type process struct {
	*locker
	*handle
	clusterFile string
}

func newProcess(t *testing.T, db *memory, owner string) *process {
	t.Helper()
	file := filepath.Join(t.TempDir(), "fdb.cluster")
	require.NoError(t, os.WriteFile(file, []byte("shop:abc@127.0.0.1:4500\n"), 0o600))
	h := &handle{memory: db}
	return &process{newLocker(owner, func(string) (database, error) { return h, nil }), h, file}
}

func (p *process) locked(ctx context.Context, do func(ctx context.Context) error) error {
	return p.Locked(ctx, p.clusterFile, do)
}

func until(seconds time.Duration) int64 { return time.Now().Add(seconds).Unix() }

func inBubble(t *testing.T, test func(t *testing.T, db *memory, a *process)) {
	t.Helper()
	db := &memory{deny: map[string]bool{}}
	a := newProcess(t, db, "holdfast/a/1") // before the bubble: files are real
	synctest.Test(t, func(t *testing.T) { test(t, db, a) })
}

func TestTheLockIsHeldRenewedAndGivenBack(t *testing.T) {
	inBubble(t, func(t *testing.T, db *memory, a *process) {
		problem := errors.New("the tool's")
		err := a.locked(t.Context(), func(ctx context.Context) error {
			acquired := *db.value()
			assert.Equal(t, record{"holdfast/a/1", time.Now().Unix(), until(duration)}, acquired)
			time.Sleep(30 * time.Minute)
			now := *db.value()
			assert.Equal(t, acquired.start, now.start)
			assert.GreaterOrEqual(t, now.end, until(duration-renewEvery))
			require.NoError(t, ctx.Err())
			return problem
		})
		require.ErrorIs(t, err, problem)
		assert.Nil(t, db.value())
	})
}

func TestItStaysHeldWhileACancelledCommandCleansUp(t *testing.T) {
	inBubble(t, func(t *testing.T, db *memory, a *process) {
		ctx, cancel := context.WithCancel(t.Context())
		err := a.locked(ctx, func(ctx context.Context) error {
			cancel()
			<-ctx.Done()
			time.Sleep(5 * time.Minute)
			assert.GreaterOrEqual(t, db.value().end, until(duration-renewEvery))
			return context.Cause(ctx)
		})
		require.ErrorIs(t, err, context.Canceled)
		assert.Nil(t, db.value())
	})
}

func TestAnothersLockIsWaitedFor(t *testing.T) {
	for name, tt := range map[string]struct {
		holder record
		// after is when the holder acts.
		after time.Duration
		then  func(db *memory)
		limit time.Duration // of the command
		waits time.Duration
		err   string
	}{
		"until it is given back": {
			holder: record{"kc1", 0, until(time.Hour)}, after: 10 * time.Second, waits: 10 * time.Second,
			then: func(db *memory) { db.current = nil },
		},
		"until its holder is denied": {
			holder: record{"kc1", 0, until(time.Hour)}, after: 10 * time.Second, waits: 10 * time.Second,
			then: func(db *memory) { db.deny["kc1"] = true },
		},
		"not for ever": {holder: record{"kc1", 0, 1 << 40}, waits: waitLimit, err: `after 45s: "kc1" holds it until`},
		"so that time is left for the command": {
			holder: record{"kc1", 0, 1 << 40}, limit: time.Minute, waits: 20 * time.Second, err: `after 20s: "kc1" holds it until`,
		},
		"only once if the time is short": {
			holder: record{"kc1", 0, 1 << 40}, limit: 30 * time.Second, waits: attemptLimit, err: `"kc1" holds it until`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, db *memory, a *process) {
				db.current = &tt.holder
				if tt.then != nil {
					time.AfterFunc(tt.after, func() { db.change(func() { tt.then(db) }) })
				}
				ctx, cancel := t.Context(), context.CancelFunc(func() {})
				if tt.limit > 0 {
					ctx, cancel = context.WithTimeout(ctx, tt.limit)
				}
				defer cancel()
				began, called := time.Now(), false
				err := a.locked(ctx, func(context.Context) error {
					called = true
					assert.InDelta(t, tt.waits.Seconds(), time.Since(began).Seconds(), 1.5)
					return nil
				})
				assert.Equal(t, tt.err == "", called)
				if tt.err == "" {
					require.NoError(t, err)
					return
				}
				require.ErrorContains(t, err, tt.err)
				assert.InDelta(t, tt.waits.Seconds(), time.Since(began).Seconds(), 1.5)
				assert.Equal(t, &tt.holder, db.value(), "another's lock is not touched")
			})
		})
	}
}

func TestTheLockOfACrashedHolderRunsOut(t *testing.T) {
	inBubble(t, func(t *testing.T, db *memory, a *process) {
		db.current = &record{"holdfast/a/0", time.Now().Unix(), until(30 * time.Second)}
		began := time.Now()
		require.NoError(t, a.locked(t.Context(), func(context.Context) error {
			assert.InDelta(t, 31, time.Since(began).Seconds(), 1.5)
			return nil
		}))
	})
}

func TestItIsRefusedAtOnce(t *testing.T) {
	for name, tt := range map[string]struct {
		prepare func(db *memory)
		err     string
	}{
		"to who is denied":    {func(db *memory) { db.deny["holdfast"] = true }, `"holdfast" is on its deny list`},
		"if it is not a lock": {func(db *memory) { db.broken = &ValueError{Problem: "not a tuple"} }, `\xff\x02/org.foundationdb.kubernetes-operator/global`},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, db *memory, a *process) {
				tt.prepare(db)
				began := time.Now()
				err := a.locked(t.Context(), func(context.Context) error { t.Error("called"); return nil })
				require.ErrorContains(t, err, tt.err)
				assert.Zero(t, time.Since(began))
				assert.Nil(t, db.value())
			})
		})
	}
}

func TestALostLockEndsTheCommand(t *testing.T) {
	for name, tt := range map[string]struct {
		lose func(db *memory, a *process)
		// within is when the command must have ended.
		within time.Duration
		err    string
		left   string // the holder of the lock in the end
	}{
		"when another has it": {
			lose:   func(db *memory, _ *process) { db.change(func() { db.current = &record{"kc1", 0, 1 << 40} }) },
			within: renewEvery, err: `"kc1" holds it`, left: "kc1",
		},
		"when somebody has removed it": {
			lose: func(db *memory, _ *process) { db.change(func() { db.current = nil }) }, within: renewEvery, err: "somebody has removed it",
		},
		"when we are denied": {
			lose:   func(db *memory, _ *process) { db.change(func() { db.deny["holdfast/a"] = true }) },
			within: renewEvery, err: `"holdfast/a" is on its deny list`,
		},
		"before it ends, if the database does not answer": {
			lose:   func(_ *memory, a *process) { a.set(func() { a.cut = true }) },
			within: duration - margin, err: "it could not be renewed in time", left: "holdfast/a/1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, db *memory, a *process) {
				time.Sleep(time.Minute)
				err := a.locked(t.Context(), func(ctx context.Context) error {
					tt.lose(db, a)
					began := time.Now()
					<-ctx.Done()
					assert.LessOrEqual(t, time.Since(began), tt.within)
					var lost *LostError
					require.ErrorAs(t, context.Cause(ctx), &lost)
					return nil
				})
				require.ErrorContains(t, err, tt.err)
				if tt.left == "" {
					assert.Nil(t, db.value())
				} else {
					assert.Equal(t, tt.left, db.value().owner)
				}
			})
		})
	}
}

func TestAShortOutageLosesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, db *memory, a *process) {
		require.NoError(t, a.locked(t.Context(), func(ctx context.Context) error {
			a.set(func() { a.cut = true })
			time.Sleep(time.Minute)
			a.set(func() { a.cut = false })
			time.Sleep(10 * time.Minute)
			return ctx.Err()
		}))
		assert.Nil(t, db.value())
	})
}

func TestCommitsOfWhichNothingIsKnown(t *testing.T) {
	for name, prepare := range map[string]func(db *memory, a *process){
		"taking it, said to be unknown":    func(_ *memory, a *process) { a.unknown = 1 },
		"taking it, and no answer in time": func(_ *memory, a *process) { a.mute = 1 },
		"a conflict with another who acquires and releases it": func(db *memory, a *process) {
			a.between = func() { db.change(func() { db.current = nil }) }
		},
		"a conflict with another who holds it for a while": func(db *memory, a *process) {
			a.between = func() { db.change(func() { db.current = &record{"kc1", 0, until(20 * time.Second)} }) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, db *memory, a *process) {
				prepare(db, a)
				calls := 0
				require.NoError(t, a.locked(t.Context(), func(context.Context) error {
					calls++
					assert.Equal(t, "holdfast/a/1", db.value().owner)
					return nil
				}))
				assert.Equal(t, 1, calls)
				assert.Greater(t, a.runs, 2, "nothing went wrong: the test tests nothing")
				assert.Nil(t, db.value())
			})
		})
	}
}

func TestALockOfAnUnknownCommitIsReleased(t *testing.T) {
	inBubble(t, func(t *testing.T, db *memory, a *process) {
		a.mute = 1 << 20
		time.AfterFunc(waitLimit+time.Second, func() { a.set(func() { a.mute = 0 }) })
		err := a.locked(t.Context(), func(context.Context) error { t.Error("called"); return nil })
		require.ErrorIs(t, err, errUnreachable)
		assert.Nil(t, db.value())
	})
}

func TestCommandsOfOneProcessTakeTurns(t *testing.T) {
	inBubble(t, func(t *testing.T, db *memory, a *process) {
		var group sync.WaitGroup
		running := 0
		for range 5 {
			group.Go(func() {
				assert.NoError(t, a.locked(t.Context(), func(context.Context) error {
					running++
					assert.Equal(t, 1, running)
					time.Sleep(5 * time.Second)
					running--
					return nil
				}))
			})
		}
		group.Wait()
		assert.Nil(t, db.value())

		group.Go(func() {
			_ = a.locked(t.Context(), func(context.Context) error { time.Sleep(2 * waitLimit); return nil })
		})
		synctest.Wait()
		err := a.locked(t.Context(), func(context.Context) error { t.Error("called"); return nil })
		require.ErrorContains(t, err, "another command of this worker holds it")
		group.Wait()
	})
}
