package size

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func of(d time.Duration) metav1.Duration { return metav1.Duration{Duration: d} }

// aLoad is a valid one.
func aLoad() Load {
	return Load{
		Clusters: 1, Tenants: 10_000, PlansPerTenant: 2, RunsPerDay: 1, Spread: of(15 * time.Minute), Keep: 14, Retention: of(30 * day),
		BackupTakes: of(30 * time.Second), DeletionTakes: of(3 * time.Second), ConcurrentBackups: 1,
		ScheduleStarts: scheduleStarts, TransactionsPerSecond: 5_000,
	}
}

func TestALoadIsChecked(t *testing.T) {
	require.NoError(t, aLoad().Validate())
	for _, wrong := range []struct {
		flag   string
		change func(*Load)
	}{
		{"--clusters", func(l *Load) { l.Clusters = 0 }},
		{"--clusters", func(l *Load) { l.Clusters = l.Tenants + 1 }},
		{"--clusters", func(l *Load) { l.Tenants, l.Clusters = 1_000_000, 10_001 }},
		{"--keep", func(l *Load) { l.Keep = 0 }},
		{"--tenants", func(l *Load) { l.Tenants = most + 1 }},
		{"--plans-per-tenant", func(l *Load) { l.PlansPerTenant = most }},
		{"--runs-per-day", func(l *Load) { l.RunsPerDay = 0 }},
		{"--runs-per-day", func(l *Load) { l.RunsPerDay = 1_441 }},
		{"--spread", func(l *Load) { l.Spread.Duration = time.Nanosecond }},
		{"--spread", func(l *Load) { l.RunsPerDay, l.Spread.Duration = 24, 2*time.Hour }},
		{"--backup-takes", func(l *Load) { l.BackupTakes.Duration = 0 }},
		{"--deletion-takes", func(l *Load) { l.DeletionTakes.Duration = -1 }},
		{"--schedule-starts", func(l *Load) { l.ScheduleStarts = 0 }},
		{"--schedule-starts", func(l *Load) { l.ScheduleStarts = math.NaN() }},
		{"--temporal-retention", func(l *Load) { l.Retention.Duration = -1 }},
		{"--transactions-per-second", func(l *Load) { l.TransactionsPerSecond = 0 }},
		{"--transactions-per-second", func(l *Load) { l.TransactionsPerSecond = math.Inf(1) }},
	} {
		load := aLoad()
		wrong.change(&load)
		err := load.Validate()
		require.ErrorContains(t, err, wrong.flag+": must be")
		assert.Equal(t, 1, strings.Count(err.Error(), "--"), "it names one flag: %s", err)
	}
}

func TestVeleroBreaksFirstWhenItMakesOneBackupAtATime(t *testing.T) {
	estimate := Size(aLoad())
	require.Equal(t, "Velero's time for backups", estimate.Limits[0].What)
	assert.InDelta(t, 20_000*30.0/86_400, estimate.Limits[0].Use, 0.001)
	assert.Equal(t, 10, estimate.Cluster.ConcurrentBackups)
	load := aLoad()
	load.ConcurrentBackups = estimate.Cluster.ConcurrentBackups
	first := Size(load).Limits[0] // what is recommended is enough: something else is the next
	assert.Equal(t, "one worker's requests for Velero Backups", first.What, "280,000 are stored: 14 are got in each reading")
	assert.InDelta(t, 20_000.0/900*4*14/2/500, first.Use, 0.001)
}

// The workflow of each plan is open as long as the plan exists, and that of each backup while it waits for Velero.
func TestAWorkerHasMemoryForWhatIsOpen(t *testing.T) {
	load := aLoad()
	load.Tenants, load.ConcurrentBackups = 2_000, 1
	assert.InDelta(t, 4_000+4_000-30, load.open(), 1, "Velero makes 30 of 4,000 within 15 minutes")
	assert.Greater(t, Size(load).Cluster.Worker.GoMemLimitMiB, 2*(workerRestBytes+4_000*workerBytesPerOpen/2)/mib)
	load.ConcurrentBackups = 200
	assert.InDelta(t, 4_000+4_000.0/900*30, load.open(), 1)
	load.Tenants = 10
	small := Size(load).Cluster
	assert.Equal(t, leastWorker.MemoryMiB, small.Worker.MemoryMiB, "no less than the manifests")
	assert.Equal(t, leastWatcher.GoMemLimitMiB, small.Watcher.GoMemLimitMiB)
}

func TestTheEstimateSaysHowLongVeleroTakes(t *testing.T) {
	load := aLoad()
	load.Tenants, load.PlansPerTenant = 1_000, 1
	assert.Equal(t, 1_000*30*time.Second, Size(load).Cluster.AllMade.Duration)
	load.ConcurrentBackups = 100
	assert.Equal(t, 15*time.Minute+30*time.Second, Size(load).Cluster.AllMade.Duration, "it waits for the last that is due")
	assert.Contains(t, printed(t, "--tenants", "1000"), "--concurrent-backups 1 makes the backups of one due time in 8h20m0s\n")
	assert.Contains(t, printed(t, "--tenants", "1000", "--concurrent-backups", "4"), "in 2h5m0s; 1 keeps up and leaves 30 % free, in 8h20m0s")
}

// Temporal limits queries in a namespace, and every process of a fleet sends some.
func TestProcessesAndPlansSendQueries(t *testing.T) {
	load := aLoad()
	load.Clusters, load.Tenants, load.PlansPerTenant = 100, 200_000, 2
	assert.InDelta(t, 100*(4.0/120+4.0/60), Size(load).queries(), 0.5, "4,000 plans are four pages a minute")
}

func TestAJitterIsLongEnough(t *testing.T) {
	for seconds, want := range map[float64]time.Duration{
		0.2: time.Second, 11.9: 12 * time.Second, 60: time.Minute, 61: 2 * time.Minute, 867: 15 * time.Minute,
	} {
		assert.Equal(t, want, roundedUp(seconds))
	}
}

func TestADayHasAllItsRuns(t *testing.T) {
	for runs, want := range map[float64]int{0.5: 50, 1: 100, 2.5: 250, 7: 700, 9: 900, 11: 1_100, 1_440: 144_000} {
		load := aLoad()
		load.RunsPerDay = runs
		all := 0
		for _, arrivals := range dueTimes(load, 100) {
			all += arrivals.Jobs
			assert.Less(t, arrivals.Begin, day.Seconds())
		}
		assert.Equal(t, want, all, runs)
	}
}

// What finding a plan's backups costs grows with what the cluster stores, up to what getting each of them costs.
func TestARunCostsMoreWhereMuchIsStored(t *testing.T) {
	found := func(tenants, keep int) Needs {
		load := aLoad()
		load.Tenants, load.Keep = tenants, keep
		return runIn(load).plus(ofRun.times(-1))
	}
	before := found(100, 14)[APIServerCPU]
	for _, tenants := range []int{500, 1_000} { // 14,000 and 28,000 stored
		assert.Greater(t, found(tenants, 14)[APIServerCPU], before)
		assert.Zero(t, found(tenants, 14)[Requests])
		before = found(tenants, 14)[APIServerCPU]
	}
	for _, tenants := range []int{2_000, 10_000, 100_000} {
		assert.InDelta(t, 4*14*0.0015, found(tenants, 14)[APIServerCPU], 1e-9)
		assert.InDelta(t, 4*13, found(tenants, 14)[Requests], 1e-9)
	}
	assert.InDelta(t, 4*0.1005, found(250, 201)[APIServerCPU], 1e-9, "more than are got in one reading: a list of 100,500")
	assert.Zero(t, found(250, 201)[Requests])
}

// What the model takes for lists is what was measured where 5,000, 20,000 and 100,000 are stored.
func TestListsCostWhatWasMeasured(t *testing.T) {
	for stored, want := range map[float64]float64{5_000: 0.0015, 20_000: 0.008, 100_000: 0.1} {
		assert.InEpsilon(t, want, listSeconds(stored), 0.15)
	}
}

// A fleet of clusters needs a little more of Temporal than one cluster with all its tenants, and less of each cluster.
func TestClustersShareTemporal(t *testing.T) {
	one, fleet := aLoad(), aLoad()
	fleet.Clusters = 20
	more := ofIdleCluster()[TemporalCPU] * 19 / busyShare
	assert.InDelta(t, Size(one).Temporal.Cores+more, Size(fleet).Temporal.Cores, 1e-9)
	assert.Positive(t, more)
	assert.InEpsilon(t, Size(one).Cluster.EtcdMiB/20, Size(fleet).Cluster.EtcdMiB, 1e-9)
	assert.Less(t, Size(fleet).Cluster.Watcher.MemoryMiB, Size(one).Cluster.Watcher.MemoryMiB)
	assert.GreaterOrEqual(t, Size(fleet).Cluster.Worker.Replicas, 2)
}

func TestTheShardsAreEnoughForTheTransactions(t *testing.T) {
	assert.Equal(t, leastShards, shards(0))
	assert.Equal(t, leastShards, shards(25_000))
	assert.Equal(t, 1_024, shards(26_000))
	assert.Equal(t, 4_096, shards(200_000))
}

// With what is recommended nothing waits for long but for Velero, and with one backup at a time Velero does not end the day's.
func TestADayIsSimulated(t *testing.T) {
	load := aLoad()
	load.Tenants, load.Spread, load.ConcurrentBackups = 1_000, of(2*time.Hour), 16
	enough, err := Simulate(t.Context(), Size(load), nil)
	require.NoError(t, err)
	assert.Equal(t, 2_000, enough.Runs)
	assert.Zero(t, enough.Unfinished)
	require.Len(t, enough.Stages, 4)
	for _, stage := range enough.Stages {
		if stage.Name == stageBegin || stage.Name == stageEnd {
			assert.Less(t, stage.P95.Duration, 2*time.Second, stage.Name)
		}
	}
	assert.Less(t, enough.AllDone.Duration, 3*time.Hour)
	load.Tenants, load.ConcurrentBackups = 4_000, 1
	slow, err := Simulate(t.Context(), Size(load), nil)
	require.NoError(t, err)
	assert.InDelta(t, 2*86_400/30, slow.Runs-slow.Unfinished, 200, "two days of backups that take 30 seconds")
}

func TestTheCommandPrintsAnEstimate(t *testing.T) {
	for output, want := range map[string]string{"table": "Exceeded first: Velero's time for backups.", "yaml": "historyShards: 512"} {
		assert.Contains(t, printed(t, "--tenants", "10000", "--plans-per-tenant", "2", "-o", output), want)
	}
	var shown Shown
	require.NoError(t, json.Unmarshal([]byte(printed(t, "--tenants", "100", "--simulate", "-o", "json")), &shown))
	assert.Equal(t, 100, shown.Day.Runs)
	assert.InDelta(t, 100, shown.BackupsPerDay, 0)
	table := printed(t, "--tenants", "100", "--simulate")
	assert.Contains(t, table, "No limit is exceeded.")
	assert.Contains(t, table, "A simulated day: 100 runs")
}

func TestTheCommandRefusesALoad(t *testing.T) {
	command := Command()
	command.SetArgs([]string{"--tenants", "0"})
	command.SilenceErrors, command.SilenceUsage = true, true
	require.ErrorContains(t, command.Execute(), "--tenants")
}

func printed(t *testing.T, arguments ...string) string {
	t.Helper()
	var out bytes.Buffer
	command := Command()
	command.SetArgs(arguments)
	command.SetOut(&out)
	require.NoError(t, command.Execute())
	assert.NotContains(t, out.String(), "NaN")
	return out.String()
}
