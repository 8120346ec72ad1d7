package fdbsim_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/test/fdbsim"
	"holdfast.dev/holdfast/test/fdbsim/state"
)

func TestFaultsOfCommands(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cluster, file := w.cluster("c")
	require.NoError(t, w.sim.Control(cluster, func(c *fdbsim.Control) { c.AgentWait = time.Millisecond }))
	start := []string{"start", "-C", file, "-d", "file://" + w.dir + "/b", "-z", "-t"}
	has := func(tag string) bool {
		c, err := w.sim.State(cluster)
		require.NoError(t, err)
		return c.Backup(tag) != nil
	}
	fault := func(t *testing.T, command string, f fdbsim.Fault) {
		t.Helper()
		require.NoError(t, w.sim.SetFault(cluster, command, f))
		t.Cleanup(func() { require.NoError(t, w.sim.ClearFaults(cluster)) })
	}

	t.Run("a command that hangs before its work has done nothing", func(t *testing.T) {
		fault(t, "fdbbackup start", fdbsim.Fault{Hang: true})
		assert.Empty(t, w.hangs(500*time.Millisecond, "fdbbackup", append(start, "a")...))
		assert.False(t, has("a"))
		require.NoError(t, w.sim.ClearFaults(cluster)) // killed before it came to the fault, it would have left that to the next
		w.must("fdbbackup", append(start, "a")...)
		assert.True(t, has("a"))
	})
	t.Run("a command that hangs after its work has done it and said nothing", func(t *testing.T) {
		fault(t, "fdbbackup start", fdbsim.Fault{Hang: true, After: true})
		ctx, kill := context.WithCancel(t.Context())
		command := w.command(ctx, "fdbbackup", append(start, "b")...)
		var said bytes.Buffer
		command.Stdout, command.Stderr = &said, &said
		require.NoError(t, command.Start())
		eventually.IsTrue(t, patience, "it has done its work", func() bool { return has("b") })
		kill()
		require.Error(t, command.Wait())
		assert.Empty(t, said.String())
	})
	t.Run("a command fails with a text and a code", func(t *testing.T) {
		fault(t, "fdbbackup start", fdbsim.Fault{Fail: true, Stderr: "ERROR: no\n", ExitCode: 7, Tag: "c"})
		output, code := w.run("fdbbackup", append(start, "c")...)
		assert.Equal(t, 7, code)
		assert.Equal(t, "ERROR: no\n", output)
		assert.False(t, has("c"))
		w.must("fdbbackup", append(start, "d")...)
	})
	t.Run("a command fails after its work", func(t *testing.T) {
		fault(t, "fdbbackup", fdbsim.Fault{Fail: true, After: true, ExitCode: 1})
		output, code := w.run("fdbbackup", append(start, "e")...)
		assert.Equal(t, 1, code)
		assert.Empty(t, output)
		assert.True(t, has("e"))
	})
	t.Run("a command waits and goes on", func(t *testing.T) {
		fault(t, "*", fdbsim.Fault{Hang: true, HangFor: 300 * time.Millisecond})
		begin := time.Now()
		assert.Contains(t, w.must("fdbbackup", "tags", "-C", file), "a\nb\nd\ne\n")
		assert.GreaterOrEqual(t, time.Since(begin), 300*time.Millisecond)
	})
	t.Run("recent errors are told in the text only", func(t *testing.T) {
		require.NoError(t, w.sim.SetErrors(cluster, "a", fdbsim.Problem{At: w.sim.Store.Now(), Message: "Platform error", Task: "x"}))
		assert.Contains(t, w.must("fdbbackup", "status", "-C", file, "-t", "a"), "second(s) ago : 'Platform error' on 'x'")
		assert.Contains(t, w.must("fdbbackup", "status", "-C", file, "-t", "a", "--json"), `"Errors":[]`)
	})
	t.Run("the journal knows them all", func(t *testing.T) {
		starts, err := w.sim.CallsOf(cluster, "fdbbackup", "start")
		require.NoError(t, err)
		require.Len(t, starts, 6)
		assert.False(t, starts[0].Ended(), "it was killed")
		assert.True(t, starts[1].Ended())
		assert.Zero(t, starts[1].ExitCode)
		assert.Equal(t, append(start, "a"), starts[1].Args)
		assert.False(t, starts[2].Ended())
		assert.Equal(t, 7, starts[3].ExitCode)
		assert.NotZero(t, starts[3].PID)
		assert.Equal(t, "7.3."+fdbsim.DefaultPatch, starts[3].Version)
		w.run("fdbbackup", "describe", "-d", "file:///nowhere")
		none, err := w.sim.Calls("")
		require.NoError(t, err)
		require.Len(t, none, 1)
		assert.Equal(t, 1, none[0].ExitCode)
	})
}

func TestAClusterThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cluster, file := w.cluster("c")
	w.agent(file)
	w.must("fdbbackup", "start", "-C", file, "-d", "file://"+w.dir+"/b", "-z")
	w.until(file, "default", restorableNow)
	require.NoError(t, w.sim.Unreachable(cluster, true))
	assert.Empty(t, w.hangs(300*time.Millisecond, "fdbbackup", "status", "-C", file, "--json"))
	output, code := w.run("fdbcli", "-C", file, "--timeout", "1", "--exec", "status json")
	assert.Equal(t, 1, code)
	assert.Contains(t, output, "Specified timeout reached")
	logged := func() int64 {
		c, err := w.sim.State(cluster)
		require.NoError(t, err)
		return c.Backups[0].LogEnd
	}
	eventually.IsTrue(t, patience, "the agents stand still", func() bool {
		before := logged()
		time.Sleep(1500 * time.Millisecond)
		return logged() == before
	})
	require.NoError(t, w.sim.Unreachable(cluster, false))
	latest := w.version(cluster)
	w.until(file, "default", func(s statusJSON) bool { return s.LatestRestorablePoint.Version >= latest })

	unknown := filepath.Join(w.dir, "unknown.cluster")
	require.NoError(t, os.WriteFile(unknown, []byte("c:otherid1@127.0.0.1:4500"), 0o644))
	assert.Empty(t, w.hangs(300*time.Millisecond, "fdbbackup", "status", "-C", unknown, "--json"))
}

func TestAForgottenCommandEndsWithItsState(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, file := w.cluster("c")
	agent := w.agent(file)
	unknown := filepath.Join(w.dir, "unknown.cluster")
	require.NoError(t, os.WriteFile(unknown, []byte("c:otherid1@127.0.0.1:4500"), 0o644))
	hung := w.command(t.Context(), "fdbbackup", "status", "-C", unknown)
	require.NoError(t, hung.Start())
	eventually.Succeeds(t, patience, func() error {
		calls, err := w.sim.Calls("")
		agents, agentsErr := w.sim.Agents("c:abcd1234")
		if err = errors.Join(err, agentsErr); err == nil && (len(calls) != 1 || len(agents) != 1) {
			err = fmt.Errorf("%d calls, %d agents", len(calls), len(agents))
		}
		return err
	})
	require.NoError(t, os.Rename(filepath.Join(w.dir, "state"), filepath.Join(w.dir, "gone")))
	ended := make(chan *exec.Cmd, 2)
	for _, command := range []*exec.Cmd{hung, agent} {
		go func() {
			_ = command.Wait()
			ended <- command
		}()
	}
	for range 2 {
		select {
		case command := <-ended:
			assert.True(t, command.ProcessState.Exited(), "of itself")
		case <-time.After(patience):
			require.Fail(t, "it still runs")
		}
	}
}

func TestASnapshotThatMakesNoProgress(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cluster, file := w.cluster("c")
	require.NoError(t, w.sim.Control(cluster, func(c *fdbsim.Control) { c.StopSnapshots = true }))
	w.agent(file)
	w.must("fdbbackup", "start", "-C", file, "-d", "file://"+w.dir+"/b", "-z")
	w.until(file, "default", func(s statusJSON) bool { return s.Status.Name == state.Running })
	w.snapshotTick(cluster)
	w.snapshotTick(cluster)
	stuck := w.status(file, "default")
	assert.Equal(t, state.Running, stuck.Status.Name)
	assert.Zero(t, stuck.RangeBytesWritten)
	output, code := w.run("fdbbackup", "start", "-C", file, "-d", "file://"+w.dir+"/b", "-z")
	assert.Equal(t, 1, code)
	assert.Contains(t, output, "A backup is already running on tag `default'")
	require.NoError(t, w.sim.Control(cluster, func(c *fdbsim.Control) { c.StopSnapshots = false }))
	w.until(file, "default", restorableNow)
	most, err := w.sim.MostFirstSnapshots()
	require.NoError(t, err)
	assert.Equal(t, 1, most)
}

func TestCredentialsAndStores(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := w.s3()
	cluster, file := w.cluster("c")
	require.NoError(t, w.sim.Control(cluster, func(c *fdbsim.Control) {
		c.AgentWait, c.StoreWait = time.Millisecond, 700*time.Millisecond
	}))
	start := func(url string) (string, int) {
		return w.run("fdbbackup", "start", "-C", file, "-d", url, "-t", "t")
	}
	url := server.url("bucket", "name")

	t.Run("a wrong secret is refused", func(t *testing.T) {
		w.credentials("not-the-secret")
		output, code := start(url)
		assert.Equal(t, 1, code)
		assert.Equal(t, "ERROR: Could not create backup container: HTTP response code not received or indicated failure\n"+
			"ERROR: An error was encountered during submission\nFatal Error: Backup error\n", output)
		output, code = w.run("fdbbackup", "describe", "-d", url)
		assert.Equal(t, 1, code)
		assert.Contains(t, output, "HTTP response code not received or indicated failure")
		assert.NotContains(t, output, "not-the-secret")
	})
	t.Run("without credentials it waits for them", func(t *testing.T) {
		old := w.env
		w.env = nil
		defer func() { w.env = old }()
		output, code := start(url)
		assert.Equal(t, 1, code)
		assert.Contains(t, output, "Could not create backup container: Operation timed out")
		assert.Empty(t, w.hangs(400*time.Millisecond, "fdbbackup", "describe", "-d", url))
	})
	t.Run("a store that does not answer is waited for", func(t *testing.T) {
		assert.Empty(t, w.hangs(400*time.Millisecond, "fdbbackup", "describe", "-d", strings.Replace(url, server.address, "127.0.0.1:9", 1)))
	})
	t.Run("a URL that the tools refuse", func(t *testing.T) {
		for name, bad := range map[string]string{
			"a name with a colon":      server.url("bucket", "name-10:00"),
			"a name with a plus":       server.url("bucket", "name+00"),
			"no name":                  server.url("bucket", ""),
			"an empty bucket":          server.url("", "name"),
			"a parameter nobody knows": url + "&colour=red",
			"another scheme":           "s3://bucket/name",
		} {
			output, code := start(bad)
			assert.Equal(t, 10, code, name)
			assert.Contains(t, output, "Backup Container URL invalid", name)
			output, code = w.run("fdbbackup", "delete", "-d", bad)
			assert.Equal(t, 1, code, name)
			assert.Contains(t, output, "Fatal Error: Backup Container URL invalid", name)
		}
	})
	t.Run("the missing bucket is made", func(t *testing.T) {
		w.credentials(secretKey)
		require.NoError(t, w.sim.Control(cluster, func(c *fdbsim.Control) { c.StoreWait = patience }))
		assert.Empty(t, server.objects(t, "bucket", ""))
		output, code := start(url)
		require.Zero(t, code, output)
		assert.Contains(t, output, "successfully submitted but no backup agents are responding.")
		assert.Equal(t, []string{"backups/name"}, server.objects(t, "bucket", ""))
		assert.Equal(t, state.Submitted, w.status(file, "t").Status.Name)
	})
}

// A bucket is asked for in the URL's region by name, which a server in us-east-1 refuses.
func TestABucketThatCannotBeMade(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url := w.s3In("us-east-1").url("bucket", "name")
	_, file := w.cluster("c")
	w.must("fdbbackup", "start", "-C", file, "-d", "file://"+w.dir+"/b", "-t", "f", "-z")
	for _, recording := range []string{"s3-start-no-bucket-us-east-1.txt", "s3-modify-no-bucket-us-east-1.txt"} {
		recorded := readTranscript(t, recording)
		output, code := w.run("fdbbackup", recorded.args[1], "-C", file, "-d", url, "-t", recorded.option("-t", ""))
		assert.Equal(t, recorded.code, code)
		assert.Equal(t, strings.ReplaceAll(recorded.stderr, recorded.option("-d", ""), url), output)
	}
}

// The real tool keeps the local time of each start.
func TestAStartBeforeTheLastOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cluster, file := w.cluster("c")
	last := w.sim.Store.Now().Add(9 * time.Hour).Format("2006-01-02-15-04-05.000000")
	require.NoError(t, w.sim.Change(cluster, func(c *state.Cluster) error {
		c.LastStart = last
		return nil
	}))
	start := []string{"start", "-C", file, "-d", "file://" + w.dir + "/b", "-t", "f", "-z"}
	output, code := w.run("fdbbackup", start...)
	recorded := readTranscript(t, "d1-start-last-in-the-future.txt")
	assert.Equal(t, recorded.code, code)
	assert.Equal(t, regexp.MustCompile("`[0-9.-]+'").ReplaceAllString(recorded.stderr, "`"+last+"'"), output)
	w.must("fdbbackup", append(start, "-n")...) // a dry run does not find it out
	require.NoError(t, w.sim.Advance(10*time.Hour))
	w.must("fdbbackup", start...)
}
