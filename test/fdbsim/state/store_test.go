package state_test

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/test/fdbsim/state"
)

func TestChangesAtTheSameTimeAreAllKept(t *testing.T) {
	s := state.Store{Dir: t.TempDir()}
	require.NoError(t, s.Create("c:1", &state.Cluster{Created: time.Now()}))
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 10 {
				assert.NoError(t, s.Update("c:1", func(tx *state.Tx) error {
					tx.SetBackup(&state.Backup{Tag: strconv.Itoa(i) + "-" + strconv.Itoa(j)})
					data, err := tx.Data()
					if err == nil {
						data.Change(1, state.Mutation{Key: []byte("key"), Value: []byte{byte(i), byte(j)}})
					}
					return err
				}))
			}
		})
	}
	all.Wait()
	c, err := s.Read("c:1")
	require.NoError(t, err)
	assert.Len(t, c.Backups, 80)
	require.NoError(t, s.Update("c:1", func(tx *state.Tx) error {
		data, err := tx.Data()
		require.NoError(t, err)
		assert.Len(t, data.Mutations, 80)
		for i, m := range data.Mutations {
			assert.Equal(t, int64(i+1), m.Version, "each change has a version of its own")
		}
		return nil
	}))
}

func TestAnErrorLeavesTheStateAsItWas(t *testing.T) {
	s := state.Store{Dir: t.TempDir()}
	require.NoError(t, s.Create("c:1", &state.Cluster{}))
	err := s.Update("c:1", func(tx *state.Tx) error {
		tx.Paused = true
		return assert.AnError
	})
	require.ErrorIs(t, err, assert.AnError)
	c, err := s.Read("c:1")
	require.NoError(t, err)
	assert.False(t, c.Paused)
	_, err = s.Read("c:2")
	assert.ErrorIs(t, err, state.ErrUnknown)
}

func TestConnectionStrings(t *testing.T) {
	for text, want := range map[string]string{
		"lab:8iob3tva@127.0.0.1:4500":                     "lab:8iob3tva",
		"# a comment\n\na_b:1@10.0.0.1:4500,[::1]:4501\n": "a_b:1",
		"a_b:1@10.0.0.1:4500:tls":                         "a_b:1",
		"garbage":                                         "",
		"":                                                "",
		"a-b:1@10.0.0.1:4500":                             "",
	} {
		name, valid := state.ParseConnection(text)
		assert.Equal(t, want, name, text)
		assert.Equal(t, want != "", valid, text)
	}
}

func TestMutations(t *testing.T) {
	d := &state.Data{}
	set := func(version int64, key string) {
		d.Change(version, state.Mutation{Key: []byte(key), Value: []byte(key)})
	}
	set(10, "b")
	set(10, "a")
	set(20, "c")
	d.Change(30, state.Mutation{Key: []byte("a"), End: []byte("c")})
	require.Len(t, d.Keys, 1)
	value, found := d.Get([]byte("c"))
	assert.True(t, found)
	assert.Equal(t, "c", string(value))
	assert.Len(t, d.Since(11, 30), 2, "the change at the end is not in")
	d.Forget(30)
	assert.Len(t, d.Mutations, 1)
	assert.Equal(t, []byte{'b'}, state.Next([]byte("a")))
	assert.Equal(t, []byte("b"), state.Next([]byte("a\xff")))
	assert.Equal(t, []byte{0xff}, state.Next(nil))
}
