package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/workflows/workflowtest/sample"
)

// A run of a plan costs what its backup costs, the plan's own status, and the record of the backup. A restart over plans that have
// nothing to do writes nothing.
func TestPlansOfOneMinute(t *testing.T) {
	if testing.Short() {
		t.Skip("starts real components (-short)")
	}
	sample.InLong(t, "TestABackupCostsNoMoreThanPromised") // of one plan that is due; test/outage has another
	// The window and what is planned in a second are those of the plans' status, not of the machine.
	limits := map[string]float64{
		"seconds of the window": 20, "planned in a second": 19, "writes": 14,
		"workflows after the restart": 0, "writes after the restart": 0,
	}
	of := planLoad{plans: 40, namespaces: 4, watchers: 2, jitter: "20s", ahead: 30 * time.Second}
	requireAtMost(t, limits, func(int) map[string]float64 {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		report, err := measurePlans(ctx, of)
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil { // a busy machine makes no 40 plans in that time
			t.Log(err)
			of.ahead = 3 * time.Minute
			report, err = measurePlans(ctx, of)
		}
		require.NoError(t, err)
		report.print(t.Output())
		t.Logf("written after the restart: %q", report.Restart.Writes)
		assert.Greater(t, report.WindowSeconds, 10.0, "jitter spreads them")
		assert.GreaterOrEqual(t, report.WritesPerRun, 8.0, "fewer: not all were seen")
		assert.Positive(t, report.Restart.Requests, "the watchers have read all")
		for _, name := range measured {
			assert.Positive(t, report.Processes[name].PeakMiB, name)
		}
		return map[string]float64{
			"seconds of the window": report.WindowSeconds, "planned in a second": float64(report.PlannedPerSecond),
			"writes": report.WritesPerRun, "workflows after the restart": float64(report.Restart.WorkflowsStarted),
			"writes after the restart": float64(len(report.Restart.Writes)),
		}
	})
}

func TestTheBusiestSpanIsCounted(t *testing.T) {
	begin := time.Unix(1_800_000_000, 0)
	times := []time.Time{begin, begin.Add(900 * time.Millisecond), begin.Add(time.Second), begin.Add(30 * time.Second)}
	assert.Equal(t, 2, busiest(times, time.Second))
	assert.Equal(t, 4, busiest(times, time.Minute))
	assert.Zero(t, busiest(nil, time.Second))
}

func TestWritesAfterARestartAreCounted(t *testing.T) {
	since := time.Unix(1_800_000_000, 0)
	request := func(user, verb, resource, namespace string, at time.Time) env.AuditedRequest {
		return env.AuditedRequest{User: user, Verb: verb, Resource: resource, Namespace: namespace, Name: "a", At: at, Code: 200}
	}
	var restart plansRestart
	restart.count([]env.AuditedRequest{
		request(env.HoldfastWorker, "patch", "backupplans", "shop", since.Add(-time.Second)),
		request(env.HoldfastWatcher, "update", "leases", "velero", since),
		request(env.HoldfastWorker, "patch", "backupplans", fence.Namespace, since),
		request("velero", "create", "backupplans", "shop", since),
		request(env.HoldfastWatcher, "list", "backupplans", "", since),
		request(env.HoldfastWorker, "patch", "backupplans", "shop", since),
	}, since)
	assert.Equal(t, 2, restart.Requests)
	assert.Equal(t, []string{"holdfast-worker: patch backupplans shop/a"}, restart.Writes)
}
