package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/workflows/contract"
)

// What a turn costs in events, and a backup in bytes, is the same on every machine: more than this is a change of the product. A
// run must leave less than 2 MB to the next, which is what Temporal takes.
func TestATurnCostsNoMoreThanPromised(t *testing.T) {
	r, err := measureExpiry(250)
	require.NoError(t, err)
	assert.Equal(t, 250, r.Turns, "each had its turn")
	assert.LessOrEqual(t, r.EventsPerTurn, 12.0)
	assert.GreaterOrEqual(t, r.EventsPerTurn, 9.0, "fewer: not all were seen")
	assert.InDelta(t, r.EventsPerTurn, float64(r.EventsPerRound)/250, 0.01)
	assert.Less(t, r.InputBytes, 250*250)
	assert.Greater(t, r.InputBytes, 250*100)
	assert.Positive(t, r.HeapKiB)
	assert.Positive(t, r.RoundMs)
	assert.Positive(t, r.PerTurnRatio)
}

// Of more backups than one listing returns each has its turn too: the others stay in their objects, and are listed again.
func TestARoundOfMoreThanOneListing(t *testing.T) {
	r, err := runExpiryRound(contract.MaxFound + 100)
	require.NoError(t, err)
	assert.Len(t, r.last, contract.MaxFound+100)
	assert.Less(t, len(r.input), contract.MaxCarried*250)
}

func TestTheQueueIsMeasuredAlone(t *testing.T) {
	output := filepath.Join(t.TempDir(), "bench.json")
	require.NoError(t, run(t.Context(), plan{profile: profileCosts, sizes: "", namespaces: 1, expiries: 20}, output))
	data, err := os.ReadFile(output)
	require.NoError(t, err)
	assert.Contains(t, string(data), `"historyEventsPerRound"`)
	assert.NotContains(t, string(data), `"bursts"`)
	require.ErrorContains(t, run(t.Context(), plan{profile: profileCosts, namespaces: 1, expiries: -1}, output), "-expiries: must be at least 0")

	var out bytes.Buffer
	(&report{Expiries: &expiryReport{
		Backups: 1000, EventsPerRound: 5012, EventsPerTurn: 5.012, InputBytes: 200_000, HeapKiB: 250.4, RoundMs: 900, PerTurnRatio: 1.25,
	}}).print(&out)
	assert.Equal(t, `
A round of the queue of expirations, 1000 backups, one at a time:
        5012  history events, 5.0 a turn
      200000  bytes left to the next run, 200 a backup
         250  KiB of a worker's memory for the entries
         900  ms of the queue's own work; a turn takes 1.2 times as long as with 100 backups

`, out.String())
}
