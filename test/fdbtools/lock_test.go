package fdbtools_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/workflows/contract"
)

// lock is a lock of the FoundationDB operator that can be had or not.
type lock struct {
	taken  error
	before func()
	held   int
}

func (l *lock) Locked(ctx context.Context, clusterFile string, do func(ctx context.Context) error) error {
	if l.taken != nil || clusterFile == "" {
		return l.taken
	}
	l.held++
	if l.before != nil {
		l.before()
	}
	return do(ctx)
}

func TestCommandIsRunUnderTheOperatorsLock(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	held := &lock{}
	s.locker = held
	assert.True(t, s.command(contract.FDBPause, "").Done)
	assert.True(t, s.command(contract.FDBPause, "").Done)
	assert.Equal(t, 1, held.held, "nothing is locked for what is done already")

	held.taken = errors.New("another operator holds it, " + fdbSecret)
	outcome := s.command(contract.FDBResume, "")
	require.NotNil(t, outcome.Failure)
	assert.Contains(t, outcome.Failure.Message, "lock could not be acquired")
	assert.NotContains(t, outcome.Failure.Message, fdbSecret)
	assert.Empty(t, s.calls("resume"))

	held.taken, held.before = nil, func() { s.change(func(c *fdbsimCluster) { c.Paused = false }) }
	assert.True(t, s.command(contract.FDBResume, "").Done)
	assert.Empty(t, s.calls("resume"), "somebody else did it before the lock was had")
}
