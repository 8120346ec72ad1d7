//go:build fdb

package fdblock

import (
	"context"
	"encoding/hex"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apple/foundationdb/bindings/go/src/fdb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// These tests use the Go bindings: with test/fdbstub, or with the database of FDBLOCK_CLUSTER_FILE where FoundationDB's real
// client is linked.

func TestTheOperatorsValue(t *testing.T) {
	// A tuple of a string and two positive integers of four bytes, by FoundationDB's specification of tuples.
	value, err := hex.DecodeString("02" + "6b6331" + "00" + "18" + "6553f100" + "18" + "6553f358")
	require.NoError(t, err)
	lock := record{owner: "kc1", start: 1_700_000_000, end: 1_700_000_600}
	assert.Equal(t, value, encode(lock))
	got, err := decode(value)
	require.NoError(t, err)
	assert.Equal(t, &lock, got)

	for name, wrong := range map[string][]byte{
		"no tuple":            []byte("\xfe"),
		"cut short":           value[:len(value)-2],
		"too few":             value[:10],
		"not an owner":        []byte("\x14\x14\x14"),
		"seconds of no int64": append(append([]byte{}, value[:10]...), "\x1c\xff\xff\xff\xff\xff\xff\xff\xff"...),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := decode(wrong)
			var problem *ValueError
			require.ErrorAs(t, err, &problem)
		})
	}
}

// clusterFile names a database of the stand-in, which behaves as its name says.
func clusterFile(t *testing.T, behaviour string) string {
	t.Helper()
	if path := os.Getenv("FDBLOCK_CLUSTER_FILE"); path != "" {
		if behaviour != "" {
			t.Skip("a real database does not misbehave by request")
		}
		return path
	}
	path := filepath.Join(t.TempDir(), "fdb.cluster")
	require.NoError(t, os.WriteFile(path, []byte("test"+behaviour+":abc@127.0.0.1:4500\n"), 0o600))
	return path
}

// outside reads and changes the lock as another client does.
func outside(t *testing.T, file string, step func(tx transaction) error) {
	t.Helper()
	_, connection, err := readClusterFile(file)
	require.NoError(t, err)
	db, err := open(connection)
	require.NoError(t, err)
	defer db.close()
	require.NoError(t, db.transact(t.Context(), step))
}

func value(t *testing.T, file string) (current *record) {
	t.Helper()
	outside(t, file, func(tx transaction) (err error) {
		current, err = tx.lock()
		return err
	})
	return current
}

func TestThroughTheBindings(t *testing.T) {
	for _, behaviour := range []string{"", "conflict", "unknown", "locked"} {
		t.Run("a database "+behaviour, func(t *testing.T) {
			file := clusterFile(t, behaviour)
			plain := clusterFile(t, "")
			locker := New().(*locker)
			called := false
			require.NoError(t, locker.Locked(t.Context(), file, func(context.Context) error {
				called = true
				held := value(t, plain)
				require.NotNil(t, held)
				assert.Equal(t, locker.owner, held.owner)
				assert.InDelta(t, time.Now().Add(duration).Unix(), held.end, duration.Seconds()/2)
				return nil
			}))
			assert.True(t, called)
			assert.Nil(t, value(t, plain))
		})
	}
}

func TestAnotherHoldsItThroughTheBindings(t *testing.T) {
	file := clusterFile(t, "")
	outside(t, file, func(tx transaction) error {
		tx.write(record{"kc1", time.Now().Unix(), time.Now().Add(time.Hour).Unix()})
		return nil
	})
	defer outside(t, file, func(tx transaction) error { tx.clear(); return nil })
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	err := New().Locked(ctx, file, func(context.Context) error { t.Error("called"); return nil })
	require.ErrorContains(t, err, `"kc1" holds it until`)

	deny := func(denied bool) {
		outside(t, file, func(tx transaction) error {
			if key := fdb.Key(denyKeys + "kc1"); denied {
				tx.(*fdbTransaction).Set(key, []byte("kc1"))
			} else {
				tx.(*fdbTransaction).Clear(key)
			}
			return nil
		})
	}
	deny(true)
	defer deny(false)
	require.NoError(t, New().Locked(t.Context(), file, func(context.Context) error { return nil }))
	assert.Nil(t, value(t, file))
}

// Workers that request the lock at the same moment conflict in the database, and have it one after the other.
func TestOneAtATimeThroughTheBindings(t *testing.T) {
	file := clusterFile(t, "")
	var group sync.WaitGroup
	var inside, entered atomic.Int32
	for range 4 {
		group.Go(func() {
			assert.NoError(t, New().Locked(t.Context(), file, func(context.Context) error {
				assert.EqualValues(t, 1, inside.Add(1))
				entered.Add(1)
				time.Sleep(100 * time.Millisecond) // the time of a command
				inside.Add(-1)
				return nil
			}))
		})
	}
	group.Wait()
	assert.EqualValues(t, 4, entered.Load())
	assert.Nil(t, value(t, file))
}

func TestAnUnreachableDatabaseThroughTheBindings(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for 15 s")
	}
	file := clusterFile(t, "unreachable")
	ctx, cancel := context.WithTimeout(t.Context(), attemptLimit)
	defer cancel()
	err := New().Locked(ctx, file, func(context.Context) error { t.Error("called"); return nil })
	require.ErrorContains(t, err, "1031")
}
