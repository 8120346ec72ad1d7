package fdbsim_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/test/fdbsim"
	"holdfast.dev/holdfast/test/tools"
)

// patience is how long a test waits for what must come.
const patience = 3 * time.Minute

// world is a place with installed tools, run as processes of their own with an environment made of nothing.
type world struct {
	t   *testing.T
	dir string
	sim *fdbsim.Sim
	env []string
}

func newWorld(t *testing.T) *world {
	dir := t.TempDir()
	sim, err := fdbsim.Install(filepath.Join(dir, "bin"), filepath.Join(dir, "state"), "7.3")
	require.NoError(t, err)
	return &world{t: t, dir: dir, sim: sim}
}

// cluster makes a cluster and returns its name and the path of its cluster file.
func (w *world) cluster(description string) (name, file string) {
	connection, err := w.sim.NewCluster(description, "abcd1234")
	require.NoError(w.t, err)
	file = filepath.Join(w.dir, description+".cluster")
	require.NoError(w.t, os.WriteFile(file, []byte(connection), 0o644))
	return description + ":abcd1234", file
}

func (w *world) command(ctx context.Context, tool string, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, w.sim.Tool("7.3", tool), args...)
	command.Env = append([]string{}, w.env...)
	command.Dir = w.dir
	return command
}

// run runs a tool to its end.
func (w *world) run(tool string, args ...string) (output string, code int) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	content, err := w.command(ctx, tool, args...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(w.t, err)
	}
	require.NoError(w.t, ctx.Err(), "%s %q hangs", tool, args)
	if exit != nil {
		return string(content), exit.ExitCode()
	}
	return string(content), 0
}

// must runs a tool that has to succeed.
func (w *world) must(tool string, args ...string) string {
	w.t.Helper()
	output, code := w.run(tool, args...)
	require.Zero(w.t, code, "%s %q: %s", tool, args, output)
	return output
}

// hangs runs a tool that has to be killed, and returns what it printed.
func (w *world) hangs(limit time.Duration, tool string, args ...string) string {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), limit)
	defer cancel()
	output, err := w.command(ctx, tool, args...).CombinedOutput()
	require.Error(w.t, err)
	require.Error(w.t, ctx.Err(), "%s %q ended: %s", tool, args, output)
	return string(output)
}

// agent starts an agent for a cluster. It ends with the test.
func (w *world) agent(file string) *exec.Cmd {
	command := w.command(context.Background(), "backup_agent", "-C", file, "--log", "--logdir", w.dir, "--locality_zoneid=zone")
	command.Stdout, command.Stderr = &bytes.Buffer{}, os.Stderr
	require.NoError(w.t, command.Start())
	w.t.Cleanup(func() { kill(command) })
	return command
}

// beat waits until each agent of a cluster has begun another round, so that it has ended the one before.
func (w *world) beat(cluster string) {
	w.t.Helper()
	before := map[string]time.Time{}
	eventually.Succeeds(w.t, patience, func() error {
		agents, err := w.sim.Agents(cluster)
		all := len(agents) > 0
		for _, a := range agents {
			if _, known := before[a.ID]; !known {
				before[a.ID] = a.Beat
			}
			all = all && a.Beat.After(before[a.ID])
		}
		if err == nil && !all {
			err = fmt.Errorf("the agents of %s stand still: %+v", cluster, agents)
		}
		return err
	})
}

// snapshotTick waits until an agent has come to the snapshot of a cluster's first backup once more.
func (w *world) snapshotTick(cluster string) {
	w.t.Helper()
	tick := func() time.Time {
		c, err := w.sim.State(cluster)
		require.NoError(w.t, err)
		return c.Backups[0].Snapshot.Tick
	}
	before := tick()
	eventually.IsTrue(w.t, patience, "an agent comes to the snapshot", func() bool { return tick().After(before) })
}

func kill(command *exec.Cmd) {
	_ = command.Process.Kill()
	_ = command.Wait()
}

// statusJSON is what tests read of status --json.
type statusJSON struct {
	UID    string
	Status struct {
		Name    string
		Running bool
	}
	BackupAgentsPaused      bool
	Restorable              bool
	DestinationURL          string
	SnapshotIntervalSeconds int64
	RangeBytesWritten       int64
	LatestRestorablePoint   struct{ Version int64 }
	LatestSnapshotEnd       struct{ Version int64 }
	LatestLogEnd            struct{ Version int64 }
}

func (w *world) status(file, tag string) statusJSON {
	w.t.Helper()
	var status statusJSON
	require.NoError(w.t, json.Unmarshal([]byte(w.must("fdbbackup", "status", "-C", file, "-t", tag, "--json")), &status))
	return status
}

// until waits for a backup's status.
func (w *world) until(file, tag string, ready func(statusJSON) bool) statusJSON {
	w.t.Helper()
	var status statusJSON
	eventually.Succeeds(w.t, patience, func() error {
		if status = w.status(file, tag); ready(status) {
			return nil
		}
		return fmt.Errorf("%s: %+v", tag, status)
	})
	return status
}

func restorableNow(s statusJSON) bool { return s.Restorable }

// after waits until a version can be restored.
func after(version int64) func(statusJSON) bool {
	return func(s statusJSON) bool { return s.LatestRestorablePoint.Version >= version }
}

func (w *world) version(cluster string) int64 {
	version, err := w.sim.Version(cluster)
	require.NoError(w.t, err)
	return version
}

func (w *world) keys(cluster string) map[string]string {
	keys, err := w.sim.Keys(cluster)
	require.NoError(w.t, err)
	return keys
}

// Credentials of the S3 server.
const accessKey, secretKey = "lab", "a-secret-of-the-lab"

// store is an S3 server.
type store struct {
	address string
	region  string
	dir     string
}

// url is that of a container.
func (s store) url(bucket, name string) string {
	return fmt.Sprintf("blobstore://%s@%s/%s?bucket=%s&secure_connection=0&region=%s", accessKey, s.address, name, bucket, s.region)
}

// s3 starts an S3 server and gives the world's tools its credentials.
func (w *world) s3() store { return w.s3In("eu-central-1") }

func (w *world) s3In(region string) store {
	gateway, err := tools.Path(w.t.Context(), tools.VersityGW)
	require.NoError(w.t, err)
	listener, err := (&net.ListenConfig{}).Listen(w.t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(w.t, err)
	s := store{address: listener.Addr().String(), region: region, dir: filepath.Join(w.dir, "s3", region)}
	require.NoError(w.t, listener.Close())
	sidecar := filepath.Join(w.dir, "attributes", region)
	require.NoError(w.t, errors.Join(os.MkdirAll(s.dir, 0o755), os.MkdirAll(sidecar, 0o755)))
	_, port, err := net.SplitHostPort(s.address)
	require.NoError(w.t, err)
	server := exec.CommandContext(context.Background(), gateway, "--port", "127.0.0.1:"+port, "--region", region,
		"--health", "/healthz", "posix", "--sidecar", sidecar, s.dir)
	server.Env = []string{"ROOT_ACCESS_KEY=" + accessKey, "ROOT_SECRET_KEY=" + secretKey}
	log := filepath.Join(w.dir, "s3-"+region+".log")
	output, err := os.Create(log)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { output.Close() })
	server.Stdout, server.Stderr = output, output
	require.NoError(w.t, server.Start())
	w.t.Cleanup(func() { kill(server) })
	w.t.Cleanup(func() {
		if content, err := os.ReadFile(log); err == nil && w.t.Failed() {
			w.t.Logf("the S3 server: %s", content)
		}
	})
	eventually.Succeeds(w.t, patience, func() error {
		ctx, cancel := context.WithTimeout(w.t.Context(), patience)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.address+"/healthz", nil)
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return fmt.Errorf("the S3 server does not answer: %w", err)
		}
		if err := answer.Body.Close(); err != nil || answer.StatusCode != http.StatusOK {
			return errors.Join(err, fmt.Errorf("the S3 server answers %s", answer.Status))
		}
		return nil
	})
	w.credentials(secretKey)
	return s
}

// credentials gives the world's tools a credentials file. Its keys hold no port.
func (w *world) credentials(secret string) {
	file := filepath.Join(w.dir, "credentials.json")
	content := fmt.Sprintf(`{"accounts":{"other@127.0.0.1":{"secret":"x"},"%s@127.0.0.1":{"secret":"%s"}}}`, accessKey, secret)
	require.NoError(w.t, os.WriteFile(file, []byte(content), 0o600))
	w.env = []string{"FDB_BLOB_CREDENTIALS=" + filepath.Join(w.dir, "none.json") + ":" + file}
}

// objects lists the keys in a bucket below a prefix, as paths.
func (s store) objects(t *testing.T, bucket, prefix string) []string {
	var keys []string
	root := filepath.Join(s.dir, bucket)
	err := filepath.Walk(filepath.Join(root, prefix), func(path string, info os.FileInfo, err error) error {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err == nil && info.Mode().IsRegular() {
			keys = append(keys, strings.TrimPrefix(path, root+"/"))
		}
		return err
	})
	require.NoError(t, err)
	return keys
}
