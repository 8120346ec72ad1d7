package main

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"holdfast.dev/holdfast/test/env"
)

// requireALoadMeasured puts a small load on the stack: each backup is deleted, and everything is counted. At its end Holdfast is
// stopped.
func requireALoadMeasured(ctx context.Context, t *testing.T, r *rig) {
	t.Helper()
	second := time.Second
	report, err := r.load(ctx, steadyLoad{
		perSecond: 2, rest: second, lasts: 5 * second, keep: 5 * second, every: 6 * second, namespaces: 4, watchers: 2,
		open: 2, alone: true,
	})
	require.NoError(t, err)
	report.print(t.Output())
	require.NotNil(t, report.Open)
	assert.Len(t, report.Open.CPUMs, len(measured))
	assert.Positive(t, report.Open.CPUMs[env.Temporal])
	require.NotNil(t, report.Alone)
	assert.Contains(t, report.Alone.CPUSeconds, env.Temporal)
	whole := report.Whole
	assert.Equal(t, 10, whole.Created)
	assert.Equal(t, 10, whole.Deleted)
	assert.Len(t, report.Samples, 2)
	assert.Positive(t, whole.WorkerRequests)
	assert.Positive(t, written(whole.WorkerByMethod))
	assert.Positive(t, whole.WatcherRequests)
	assert.Positive(t, whole.FrontendByOperation["SignalWithStartWorkflowExecution"])
	assert.Positive(t, whole.Ended.Runs)
	assert.Positive(t, whole.Ended.Events)
	assert.Positive(t, whole.Ended.Bytes)
	for _, name := range []string{env.Worker, env.Watcher, env.Temporal, env.KubeAPIServer, env.Etcd} {
		assert.Positive(t, whole.MemoryMiB[name], name)
		assert.Contains(t, whole.CPUSeconds, name)
	}
}

func TestASteadyLoadIsChecked(t *testing.T) {
	ok := steadyLoad{perSecond: 12, lasts: time.Hour, rest: time.Second, every: time.Minute, namespaces: 1, watchers: 1}
	require.NoError(t, ok.check())
	assert.Equal(t, 43_200, ok.backups())
	bad := ok
	bad.perSecond = 0
	require.ErrorContains(t, bad.check(), "-long-rate")
	bad = ok
	bad.keep = -1
	require.ErrorContains(t, bad.check(), "-long-keep")
	bad = ok
	bad.open = -1
	require.ErrorContains(t, bad.check(), "-long-open")
	require.ErrorContains(t, run(t.Context(), plan{profile: profileLong}, ""), "-long")
}

// The load does not wait for those who serve it: what is created late is not created less often.
func TestBackupsComeAtTheirTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		load := steadyLoad{perSecond: 4, lasts: 5 * time.Second, namespaces: 3}
		begin, slow := time.Now(), time.Second
		var mutex sync.Mutex
		at := map[types.NamespacedName]time.Duration{}
		err := steadily(t.Context(), load, time.Minute, func(_ context.Context, key types.NamespacedName, due time.Time) error {
			mutex.Lock()
			at[key] = time.Since(begin)
			assert.Equal(t, at[key], due.Sub(begin))
			mutex.Unlock()
			time.Sleep(slow)
			return nil
		})
		require.NoError(t, err)
		require.Len(t, at, 20)
		for i := range 20 {
			assert.Equal(t, time.Minute+time.Duration(i)*250*time.Millisecond, at[load.key(i)])
		}
	})
}

func TestBackupsCountInTheSampleInWhichTheySettle(t *testing.T) {
	begin := time.Unix(1_800_000_000, 0)
	o := &observer{begun: map[types.NamespacedName]time.Time{}, settled: map[types.NamespacedName]time.Time{}}
	for i, name := range []string{"a", "b", "c"} {
		o.begin(types.NamespacedName{Name: name}, begin)
		o.settled[types.NamespacedName{Name: name}] = begin.Add(time.Duration(i) * time.Minute)
	}
	o.noteDeleted()
	created, settled, deleted := o.counts()
	assert.Equal(t, []int{3, 3, 1}, []int{created, settled, deleted})
	assert.Equal(t, map[types.NamespacedName]span{{Name: "b"}: {begin, begin.Add(time.Minute)}},
		o.settledBetween(begin, begin.Add(time.Minute)))
}

func TestWhatProcessesShareCountsOnce(t *testing.T) {
	assert.InDelta(t, 2.5, proportional([]byte("0-1 ---p [rollup]\nRss:  9000 kB\nPss:  2560 kB\nPss_Dirty:  1 kB\n")), 0.001)
	assert.Zero(t, proportional(nil))
}

func TestACounterIsAddedUpByALabel(t *testing.T) {
	const page = `# TYPE service_requests counter
service_requests{namespace="a",operation="CreateSchedule",service_name="frontend"} 60
service_requests{namespace="b",operation="CreateSchedule",service_name="frontend"} 8
service_requests{namespace="a",operation="DescribeSchedule",service_name="frontend"} 90
service_requests{namespace="a",operation="AddActivityTask",service_name="matching"} 360
service_requests_other{operation="CreateSchedule"} 5
`
	wanted := func(labels string) bool { return !strings.Contains(labels, "matching") }
	counts, err := sumCounter(page, "service_requests", "operation", wanted)
	require.NoError(t, err)
	assert.Equal(t, map[string]float64{"CreateSchedule": 68, "DescribeSchedule": 90}, counts)
	each, all := added(map[string]float64{"CreateSchedule": 8, "ListWorkflowExecutions": 3}, counts)
	assert.Equal(t, map[string]float64{"CreateSchedule": 60, "DescribeSchedule": 90}, each)
	assert.InDelta(t, 150, all, 0)
	_, err = sumCounter(`a{b="c"} many`+"\n", "a", "b", wanted)
	require.Error(t, err)
	assert.InDelta(t, 6, written(map[string]float64{"GET": 9, "POST": 1, "PUT": 1, "PATCH": 2, "DELETE": 2}), 0)
}

func TestPostgresCountsAreReadInTheirOrder(t *testing.T) {
	count, err := readDatabaseCount("50|20|300|40|7")
	require.NoError(t, err)
	assert.Equal(t, databaseCount{Bytes: 50, Histories: 20, Log: 300, Statements: 40, Transactions: 7}, count)
	before := count
	before.Bytes = 40
	assert.Equal(t, databaseCount{Bytes: 10}, count.minus(before))
	for _, bad := range []string{"", "1|2|3|4", "1|2|3|4|x"} {
		_, err := readDatabaseCount(bad)
		require.ErrorContains(t, err, "PostgreSQL's counts", bad)
	}
}
