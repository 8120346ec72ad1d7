package fdbsim_test

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/test/fdbsim"
)

// descriptionJSON is what tests read of describe --json.
type descriptionJSON struct {
	Restorable         bool
	Snapshots          []struct{ Start, End struct{ Version int64 } }
	ExpiredEnd         struct{ Version int64 }
	MinRestorablePoint struct{ Version int64 }
	MaxRestorablePoint struct{ Version int64 }
}

func (w *world) describe(url string, args ...string) descriptionJSON {
	var d descriptionJSON
	output := w.must("fdbbackup", append([]string{"describe", "-d", url, "--json"}, args...)...)
	require.NoError(w.t, json.Unmarshal([]byte(output), &d))
	return d
}

func TestABackupLivesInS3(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := w.s3()
	from, file := w.cluster("source")
	to, target := w.cluster("target")
	url := server.url("backups-of-tests", "tenant/db-2026-11-21T10-00-00Z")

	first := map[string]string{"app/1": "one", "app/2": "two", "app/3": "three", "app/4": "four", "zoo": "z"}
	require.NoError(t, w.sim.Set(from, first))
	w.agent(file)
	w.agent(target)
	w.must("fdbbackup", "start", "-C", file, "-d", url, "-t", "t", "-s", "3600", "-z")
	w.until(file, "t", restorableNow)
	assert.Equal(t, []string{"backups/tenant/db-2026-11-21T10-00-00Z"}, server.objects(t, "backups-of-tests", "backups"))
	for _, folder := range []string{"kvranges", "logs", "snapshots"} {
		assert.NotEmpty(t, server.objects(t, "backups-of-tests", "data/tenant/db-2026-11-21T10-00-00Z/"+folder))
	}

	t.Run("its keys come back as they were at a version", func(t *testing.T) {
		require.NoError(t, w.sim.Set(from, map[string]string{"app/2": "changed", "app/5": "five"}))
		require.NoError(t, w.sim.Clear(from, "zoo", "zoo\x00"))
		version := w.version(from)
		want := w.keys(from)
		require.NoError(t, w.sim.SetKeys(from, map[string]string{"other": "later"}))
		w.until(file, "t", after(w.version(from)))
		assert.Contains(t, w.must("fdbrestore", "start", "-w", "-r", url, "--dest-cluster-file", target, "-t", "r1",
			"-v", strconv.FormatInt(version, 10)), "Restored to version "+strconv.FormatInt(version, 10))
		assert.Equal(t, want, w.keys(to))
		assert.Equal(t, map[string]string{"app/1": "one", "app/2": "changed", "app/3": "three", "app/4": "four", "app/5": "five"}, want)
		require.NoError(t, w.sim.Clear(to, "", "\xff"))
	})
	t.Run("to the latest version, in part and under a prefix", func(t *testing.T) {
		d := w.describe(url, "--deep")
		require.True(t, d.Restorable)
		w.must("fdbrestore", "start", "-w", "-r", url, "--dest-cluster-file", target, "-t", "r2",
			"-v", strconv.FormatInt(d.MinRestorablePoint.Version, 10), "-k", "app/2 app/4", "--add-prefix", "restored/", "--remove-prefix", "app/")
		assert.Equal(t, map[string]string{"restored/2": "two", "restored/3": "three"}, w.keys(to))
		require.NoError(t, w.sim.Clear(to, "", "\xff"))
	})
	t.Run("while agents are paused nothing moves", func(t *testing.T) {
		w.must("fdbbackup", "pause", "-C", file)
		w.beat(from) // what was under way at the pause is over
		before := w.status(file, "t").LatestLogEnd
		w.beat(from)
		assert.Equal(t, before, w.status(file, "t").LatestLogEnd)
		assert.True(t, w.status(file, "t").BackupAgentsPaused)
		w.must("fdbbackup", "resume", "-C", file)
		w.until(file, "t", after(w.version(from)))
	})
	t.Run("its period can be changed", func(t *testing.T) {
		w.must("fdbbackup", "modify", "-C", file, "-t", "t", "-s", "7200")
		assert.EqualValues(t, 7200, w.status(file, "t").SnapshotIntervalSeconds)
	})
	t.Run("once stopped it is still there until it is deleted", func(t *testing.T) {
		w.must("fdbbackup", "abort", "-C", file, "-t", "t")
		assert.Equal(t, "Aborted", w.status(file, "t").Status.Name)
		assert.Contains(t, w.must("fdbbackup", "list", "-b", server.url("backups-of-tests", "")), "/tenant/db-2026-11-21T10-00-00Z?")
		assert.Contains(t, w.must("fdbbackup", "delete", "-d", url), "The entire container has been deleted.")
		assert.Empty(t, server.objects(t, "backups-of-tests", "data"))
		output, code := w.run("fdbbackup", "delete", "-d", url)
		assert.Equal(t, 1, code)
		assert.Contains(t, output, "Backup does not exist")
	})
}

func TestExpireDeletesWhatIsOlder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := w.s3()
	cluster, file := w.cluster("source")
	_, target := w.cluster("target")
	url := server.url("bucket", "b")
	require.NoError(t, w.sim.Set(cluster, map[string]string{"day": "0"}))
	agent := w.agent(file)
	w.agent(target)
	w.must("fdbbackup", "start", "-C", file, "-d", url, "-s", "86400", "-z")
	w.until(file, "default", restorableNow)
	for day := 1; day <= 5; day++ {
		snapshot := w.status(file, "default").LatestSnapshotEnd.Version
		require.NoError(t, w.sim.Advance(24*time.Hour))
		require.NoError(t, w.sim.Set(cluster, map[string]string{"day": strconv.Itoa(day)}))
		w.until(file, "default", func(s statusJSON) bool { return s.LatestSnapshotEnd.Version > snapshot })
	}
	w.until(file, "default", after(w.version(cluster)))
	kill(agent)
	before := w.describe(url, "--deep")
	objects := len(server.objects(t, "bucket", "data/b"))

	output, code := w.run("fdbbackup", "expire", "-d", url, "--delete-before-days", "1", "--min-restorable-days", "3")
	assert.Equal(t, 1, code, "what must stay restorable is not deleted")
	assert.Contains(t, output, "Requested expiration would be unsafe.")
	assert.Len(t, server.objects(t, "bucket", "data/b"), objects)

	w.must("fdbbackup", "expire", "-d", url, "--delete-before-days", "3", "--min-restorable-days", "1")
	d := w.describe(url, "--deep")
	assert.Greater(t, d.MinRestorablePoint.Version, before.MinRestorablePoint.Version)
	assert.Less(t, len(server.objects(t, "bucket", "data/b")), objects)
	for _, key := range server.objects(t, "bucket", "data/b/logs") {
		begin, err := strconv.ParseInt(strings.Split(key, ",")[1], 10, 64)
		require.NoError(t, err)
		assert.GreaterOrEqual(t, begin, d.ExpiredEnd.Version, key)
	}
	output, code = w.run("fdbrestore", "start", "-w", "-r", url, "--dest-cluster-file", target,
		"-v", strconv.FormatInt(before.MinRestorablePoint.Version, 10))
	assert.Equal(t, 1, code, output)
	w.must("fdbrestore", "start", "-w", "-r", url, "--dest-cluster-file", target,
		"-v", strconv.FormatInt(d.MinRestorablePoint.Version, 10))
	assert.Contains(t, []string{"2", "3"}, w.keys("target:abcd1234")["day"])
}

func TestAgentsShareTheWorkAndSurviveEachOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cluster, file := w.cluster("source")
	keys := map[string]string{}
	for i := range 40 {
		keys["key/"+strconv.Itoa(i)] = strings.Repeat("v", i)
	}
	require.NoError(t, w.sim.Set(cluster, keys))
	require.NoError(t, w.sim.Control(cluster, func(c *fdbsim.Control) { c.FirstSnapshot = 4 * time.Second }))
	agent := w.agent(file)
	w.must("fdbbackup", "start", "-C", file, "-d", "file://"+w.dir+"/b", "-z")
	half := w.until(file, "default", func(s statusJSON) bool { return s.RangeBytesWritten > 0 })
	kill(agent)
	require.Equal(t, "Running", half.Status.Name)
	require.False(t, w.status(file, "default").Restorable)
	agents, err := w.sim.Agents(cluster)
	require.NoError(t, err)
	assert.Empty(t, agents, "a killed agent does not answer")

	for range 3 {
		w.agent(file)
	}
	status := w.until(file, "default", restorableNow)
	d := w.describe(status.DestinationURL, "--deep")
	require.Len(t, d.Snapshots, 1)
	path := strings.TrimPrefix(status.DestinationURL, "file://")
	logs, err := filepath.Glob(filepath.Join(path, "logs/*/*/log,*"))
	require.NoError(t, err)
	begins := map[string]bool{}
	for _, log := range logs {
		begins[strings.Split(filepath.Base(log), ",")[1]] = true
	}
	assert.LessOrEqual(t, len(logs)-len(begins), 1, "only the killed agent may have written a file that another one wrote again")
	_, target := w.cluster("target")
	w.agent(target)
	w.must("fdbrestore", "start", "-w", "-r", status.DestinationURL, "--dest-cluster-file", target)
	assert.True(t, maps.Equal(keys, w.keys("target:abcd1234")))
	intervals, err := w.sim.FirstSnapshots(cluster)
	require.NoError(t, err)
	require.Len(t, intervals, 1)
	assert.False(t, intervals[0].End.IsZero())
	assert.Greater(t, intervals[0].End.Sub(intervals[0].Begin), 3*time.Second)
}
