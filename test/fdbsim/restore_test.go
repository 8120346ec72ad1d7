package fdbsim_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/k8s/fdb/restoretool"
	"holdfast.dev/holdfast/test/fdbsim"
)

// aBackup makes a cluster with keys and a finished backup of it, and returns the container's URL.
func (w *world) aBackup(keys map[string]string) string {
	cluster, file := w.cluster("source")
	require.NoError(w.t, w.sim.Set(cluster, keys))
	w.agent(file)
	w.must("fdbbackup", "start", "-C", file, "-d", "file://"+w.dir+"/b")
	return w.until(file, "default", func(s statusJSON) bool { return s.Status.Name == "Completed" }).DestinationURL
}

func TestARestoreThatIsStopped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url := w.aBackup(map[string]string{"a": "1", "b": "2", "c": "3", "d": "4", "e": "5", "f": "6", "g": "7", "h": "8"})
	cluster, file := w.cluster("target")
	require.NoError(t, w.sim.Control(cluster, func(c *fdbsim.Control) { c.Restore = 30 * time.Second }))
	w.must("fdbrestore", "start", "-r", url, "--dest-cluster-file", file, "-t", "r")
	assert.Contains(t, w.must("fdbrestore", "status", "--dest-cluster-file", file, "-t", "r"), "State: queued", "no agent has begun")
	output, code := w.run("fdbcli", "-C", file, "--exec", "get a")
	assert.Equal(t, 1, code)
	assert.Contains(t, output, "Database is locked (1038)")
	output, code = w.run("fdbrestore", "start", "-r", url, "--dest-cluster-file", file, "-t", "r")
	assert.Equal(t, 1, code)
	assert.Contains(t, output, "Restore duplicate request")
	assert.NotContains(t, w.hangs(500*time.Millisecond, "fdbrestore", "start", "-r", url, "--dest-cluster-file", file, "-t", "other"), "ERROR")

	w.agent(file)
	eventually.IsTrue(t, patience, "some keys are written", func() bool { return len(w.keys(cluster)) > 0 })
	assert.Contains(t, w.must("fdbrestore", "abort", "--dest-cluster-file", file, "-t", "r"), "State: aborted")
	partial := len(w.keys(cluster))
	assert.Less(t, partial, 8, "abort leaves what was written")
	output, code = w.run("fdbrestore", "start", "-r", url, "--dest-cluster-file", file, "-t", "r")
	assert.Equal(t, 1, code)
	assert.Contains(t, output, "Attempted to restore into a non-empty destination database")
	w.must("fdbcli", "-C", file, "--exec", `writemode on; clearrange "" \xff`)
	require.NoError(t, w.sim.Control(cluster, func(c *fdbsim.Control) { c.Restore = time.Second }))
	assert.Contains(t, w.must("fdbrestore", "start", "-w", "-r", url, "--dest-cluster-file", file, "-t", "r"), "Restored to version")
	assert.Len(t, w.keys(cluster), 8)
}

func TestARestoreOfWhatIsBroken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url := w.aBackup(map[string]string{"a": "1"})
	cluster, file := w.cluster("target")
	w.agent(file)
	found, err := filepath.Glob(filepath.Join(strings.TrimPrefix(url, "file://"), "kvranges/*/0/range,*"))
	require.NoError(t, err)
	for _, path := range found {
		require.NoError(t, os.Truncate(path, 3))
	}
	w.must("fdbrestore", "start", "-r", url, "--dest-cluster-file", file)
	eventually.Succeeds(t, patience, func() error { // it runs on for ever
		status := w.must("fdbrestore", "status", "--dest-cluster-file", file)
		if strings.Contains(status, "State: running") &&
			strings.Contains(status, "LastError: ''Corrupted backup data' on 'restore_range_data'' ") {
			return nil
		}
		return errors.New(status)
	})
	w.must("fdbrestore", "abort", "--dest-cluster-file", file)
	for _, path := range found {
		require.NoError(t, os.Remove(path))
	}
	for _, option := range []string{"-n", "-w"} {
		output, code := w.run("fdbrestore", "start", option, "-r", url, "--dest-cluster-file", file)
		assert.Equal(t, 1, code)
		assert.Contains(t, output, "Missing backup data")
	}
	assert.True(t, w.describe(url, "--deep").Restorable, "describe does not look at the keys' files")
	assert.Empty(t, w.keys(cluster))
}

func TestTheStaleDescribe(t *testing.T) {
	t.Parallel()
	for version, stale := range map[string]bool{"7.1.61": true, "7.3.48": true, "7.3.63": true, "7.3.64": false, "7.4.1": false} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			sim, err := fdbsim.Install(filepath.Join(w.dir, "bin"), filepath.Join(w.dir, "state"), version)
			require.NoError(t, err)
			cluster, file := w.cluster("c")
			w.agent(file)
			w.must("fdbbackup", "start", "-C", file, "-d", "file://"+w.dir+"/b", "-z")
			url := w.until(file, "default", restorableNow).DestinationURL
			describe := func(args ...string) int64 {
				command := w.command(t.Context(), "fdbbackup")
				command.Path = sim.Tool(strings.Join(strings.Split(version, ".")[:2], "."), "fdbbackup")
				command.Args = append([]string{command.Path, "describe", "-d", url, "--json"}, args...)
				output, err := command.Output()
				require.NoError(t, err)
				var d descriptionJSON
				require.NoError(t, json.Unmarshal(output, &d))
				return d.MaxRestorablePoint.Version
			}
			first := describe()
			w.until(file, "default", after(max(first, w.version(cluster))+1))
			assert.Equal(t, stale, describe() == first)
			assert.Greater(t, describe("--deep"), first)
		})
	}
}

func TestLayersOutliveTheirAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cluster, file := w.cluster("c")
	require.NoError(t, w.sim.Control(cluster, func(c *fdbsim.Control) {
		c.LayerPeriod, c.LayerExpiry = 200*time.Millisecond, 20*time.Second
	}))
	type instance struct {
		Locality map[string]string `json:"locality"`
		Version  string            `json:"version"`
	}
	layers := func() (found struct {
		Running   int                 `json:"instances_running"`
		Instances map[string]instance `json:"instances"`
	}, there bool,
	) {
		var document struct {
			Cluster struct {
				Layers map[string]json.RawMessage `json:"layers"`
			} `json:"cluster"`
		}
		require.NoError(t, json.Unmarshal([]byte(w.must("fdbcli", "-C", file, "--exec", "status json")), &document))
		backup, there := document.Cluster.Layers["backup"]
		if there {
			require.NoError(t, json.Unmarshal(backup, &found))
		}
		return found, there
	}
	_, there := layers()
	assert.False(t, there, "no agent ever ran")
	agent := w.agent(file)
	eventually.IsTrue(t, patience, "the agent is told of", func() bool {
		_, there := layers()
		return there
	})
	kill(agent)
	found, there := layers()
	require.True(t, there)
	assert.Equal(t, 1, found.Running, "the dead agent is still told of")
	for _, one := range found.Instances {
		assert.Equal(t, map[string]string{"zoneid": "zone"}, one.Locality)
		assert.Equal(t, "7.3."+fdbsim.DefaultPatch, one.Version)
	}
	assert.Contains(t, w.must("fdbbackup", "start", "-C", file, "-d", "file://"+w.dir+"/b"), "no backup agents are responding")
	eventually.IsTrue(t, patience, "the dead agent is forgotten", func() bool {
		_, there := layers()
		return !there
	})
}

// What fdbcli 7.3.48 printed for the same commands, but for the version.
func TestARangeInOneTransaction(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cluster, file := w.cluster("source")
	require.NoError(t, w.sim.Set(cluster, map[string]string{"a\x00\xff": "x'y", "b": "2", "c d": ""}))
	output := w.must("fdbcli", "-C", file, "--exec", `begin; getversion; getrange "" \xff 100001; getrange b c 5; reset`)
	version, err := restoretool.ParseVersion([]byte(output))
	require.NoError(t, err)
	assert.Equal(t, ">>> begin\nTransaction started\n>>> getversion\n"+strconv.FormatInt(version, 10)+"\n>>> getrange  \\xff 100001\n\n"+
		"Range limited to 100001 keys\n`a\\x00\\xff' is `x'y'\n`b' is `2'\n`c d' is `'\n\n"+
		">>> getrange b c 5\n\nRange limited to 5 keys\n`b' is `2'\n\n>>> reset\nTransaction reset\n", output)
}
