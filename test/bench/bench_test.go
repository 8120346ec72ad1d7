package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/outage/least"
)

// What a backup costs in writes and events is the same on every machine: more than this is a change of the product. Two watchers
// are deployed by default. Profiles that need the same stack run on it too, as small as can be.
func TestABackupCostsNoMoreThanPromised(t *testing.T) {
	if testing.Short() {
		t.Skip("starts real components (-short)")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	of := load{backups: 40, namespaces: 4, name: "watched-by-one"}
	r, err := startRig(ctx, 1, of.namespaces, env.Options{Audit: true})
	require.NoError(t, err)
	defer r.stop()
	lone, err := r.measureLone(ctx)
	require.NoError(t, err)
	assert.Positive(t, lone.ToVelero)
	t.Run("one watcher", func(t *testing.T) { requireAsPromised(ctx, t, r, of) })
	require.NoError(t, r.addWatcher(ctx))
	of.name = "watched-by-two"
	t.Run("two watchers", func(t *testing.T) { requireAsPromised(ctx, t, r, of) })
	t.Run("profile restores", func(t *testing.T) { requireRestoresMeasured(ctx, t, r) })
	t.Run("profile turns", func(t *testing.T) { requireTurnsMeasured(ctx, t, r) })
	t.Run("profile baseline", func(t *testing.T) { requireABaseline(ctx, t, r) })
	t.Run("profile long", func(t *testing.T) { requireALoadMeasured(ctx, t, r) })
}

// promised is what a backup may cost.
var promised = map[string]float64{
	"writes":           6.1, // six, and what a busy machine has tried again and told
	"requests":         12,
	"events":           45,
	"workflow tasks":   3,
	"attribute upsert": 2,
	"list volumes":     0, // nobody has seen one
}

// requireAsPromised measures bursts: how many signals come after a read, which is then repeated, is the machine's affair.
func requireAsPromised(ctx context.Context, t *testing.T, r *rig, of load) {
	t.Helper()
	requireAtMost(t, promised, func(i int) map[string]float64 {
		again := of
		again.name = fmt.Sprint(of.name, "-", i)
		burst, err := r.measure(ctx, again)
		require.NoError(t, err)
		t.Logf("%.2f requests per backup, %.2f of them writes: %v", burst.RequestsPerBackup, burst.WritesPerBackup, burst.RequestsByVerb)
		assert.Equal(t, 40, burst.Backups)
		assert.Equal(t, 40, burst.History.Sampled)
		assert.GreaterOrEqual(t, burst.WritesPerBackup, 5.0, "fewer: not all were seen")
		for _, name := range measured {
			assert.Positive(t, burst.Processes[name].PeakMiB, name)
		}
		return map[string]float64{
			"writes": burst.WritesPerBackup, "requests": burst.RequestsPerBackup,
			"events": burst.History.Events, "workflow tasks": burst.History.WorkflowTasks,
			"attribute upsert": float64(burst.History.AttributeUpsertMax),
			"list volumes":     burst.RequestsByVerb["list podvolumebackups"],
		}
	})
}

// requireAtMost measures up to three times, and requires that the least of each count is within its limit. What the product does
// too often it does each time.
func requireAtMost(t *testing.T, limits map[string]float64, measure func(i int) map[string]float64) {
	t.Helper()
	var counts least.Counts[string]
	for counts.Again(func(name string) float64 { return limits[name] }) {
		counts.Add(measure(counts.Measured()))
	}
	for name, count := range counts.Least() {
		assert.LessOrEqual(t, count, limits[name], "%s, in %d measurements", name, counts.Measured())
	}
}

func requireRestoresMeasured(ctx context.Context, t *testing.T, r *rig) {
	t.Helper()
	report, err := r.restores(ctx, restoreLoad{restores: 8, namespaces: 4})
	require.NoError(t, err)
	report.print(t.Output())
	assert.GreaterOrEqual(t, report.Writes, 5.0, "fewer: not all were seen")
	assert.Greater(t, report.Requests, report.Writes)
	assert.Positive(t, report.FrontendRequests)
	assert.Positive(t, report.Ended.Events)
	for _, name := range measured {
		assert.Positive(t, report.Processes[name].PeakMiB, name)
	}
}

func requireTurnsMeasured(ctx context.Context, t *testing.T, r *rig) {
	t.Helper()
	report, err := r.turns(ctx, turnsLoad{waiting: 12, turns: 8, active: 2, namespaces: 4})
	require.NoError(t, err)
	turnsReports{report}.print(t.Output())
	assert.GreaterOrEqual(t, report.Turns, 8)
	assert.Positive(t, report.PerSecond)
	assert.Positive(t, report.QueueRuns)
	assert.Positive(t, report.QueueEvents)
	assert.Greater(t, report.QueueBytes, report.QueueEvents)
	assert.Positive(t, report.LargestEvent)
	assert.Positive(t, report.Writes)
}

// A workflow without work has the history of a backup's.
func requireABaseline(ctx context.Context, t *testing.T, r *rig) {
	t.Helper()
	report, err := r.baseline(ctx, baselineLoad{workflows: 20})
	require.NoError(t, err)
	report.print(t.Output())
	require.Len(t, report.Shapes, len(bares))
	for _, shape := range report.Shapes {
		assert.Positive(t, shape.Temporal, shape.Title)
	}
	assert.EqualValues(t, 15, report.Shapes[0].Events)
}

func TestTurnsAreChecked(t *testing.T) {
	ok := turnsLoad{waiting: 8, turns: 8, active: 2, namespaces: 1, watchers: 1}
	require.NoError(t, ok.check())
	more := ok
	more.turns = 9
	require.ErrorContains(t, more.check(), "-turns-waiting")
	require.ErrorContains(t, run(t.Context(), plan{profile: profileTurns, turns: turnsFlags{waiting: "x"}}, ""), "-turns-waiting")
	require.ErrorContains(t, run(t.Context(), plan{profile: profileTurns, turns: turnsFlags{waiting: "1"}}, ""), "-turns-active")
	require.ErrorContains(t, run(t.Context(), plan{profile: profileBase}, ""), "-baseline")
}

func TestHeldBackupsAreCompletedWhenTheyAreReleased(t *testing.T) {
	s := &standIn{}
	s.awaitRelease(t.Context()) // nothing is held
	release := s.hold()
	done := make(chan struct{})
	go func() {
		s.awaitRelease(t.Context())
		close(done)
	}()
	release()
	release()
	<-done
	s.awaitRelease(t.Context())
	s.hold()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	s.awaitRelease(ended)
}

func TestRestoresAreChecked(t *testing.T) {
	require.NoError(t, restoreLoad{restores: 1, namespaces: 1, watchers: 1}.check())
	require.ErrorContains(t, run(t.Context(), plan{profile: profileRestore}, ""), "-restores")
}

func TestPercentiles(t *testing.T) {
	values := []time.Duration{4, 1, 3, 2}
	assert.Equal(t, time.Duration(2), percentile(values, 50))
	assert.Equal(t, time.Duration(4), percentile(values, 95))
	assert.Equal(t, time.Duration(1), percentile(values, 0))
	assert.Equal(t, []time.Duration{4, 1, 3, 2}, values)
	assert.Zero(t, percentile(nil, 50))
}

func TestSamplesAreSpread(t *testing.T) {
	keys := make([]types.NamespacedName, 10)
	for i := range keys {
		keys[i].Name = string(rune('a' + i))
	}
	assert.Equal(t, []types.NamespacedName{{Name: "a"}, {Name: "f"}}, spread(keys, 2))
	assert.Equal(t, keys, spread(keys, 10))
}

func TestUsageIsReadAsTheKernelWritesIt(t *testing.T) {
	stat := "7 (a (b) c) S 1 7 7 0 -1 4194560 1 0 0 0 150 20 3 2 20 0 9 0 100 1 1"
	used, err := parseUsage([]byte(stat), []byte("Name:\ta\nVmHWM:\t    2048 kB\nVmRSS:\t 1 kB\n"))
	require.NoError(t, err)
	assert.Equal(t, usage{CPUSeconds: 1.75, PeakMiB: 2}, used)
	for title, bad := range map[string][2]string{
		"no end of the name": {"7 (a S 1", "VmHWM: 1 kB\n"},
		"too short":          {"7 (a) S 1", "VmHWM: 1 kB\n"},
		"no peak":            {stat, "Name: a\n"},
	} {
		t.Run(title, func(t *testing.T) {
			_, err := parseUsage([]byte(bad[0]), []byte(bad[1]))
			assert.Error(t, err)
		})
	}
}

func TestWatchersUseTogether(t *testing.T) {
	assert.Equal(t, usage{CPUSeconds: 3, PeakMiB: 20}, usage{CPUSeconds: 1, PeakMiB: 20}.plus(usage{CPUSeconds: 2, PeakMiB: 10}))
}

func TestSizesAreChecked(t *testing.T) {
	sizes, err := parseNumbers("-sizes", "50, 200")
	require.NoError(t, err)
	assert.Equal(t, []int{50, 200}, sizes)
	sizes, err = parseNumbers("-sizes", "")
	require.NoError(t, err)
	assert.Empty(t, sizes, "no burst at all")
	for _, bad := range []string{" ", "0", "-1", "ten", "1,,2"} {
		_, err := parseNumbers("-sizes", bad)
		assert.ErrorContains(t, err, "-sizes", bad)
	}
}
