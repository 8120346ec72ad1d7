package fdbsim_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/test/fdbsim"
	"holdfast.dev/holdfast/test/fdbsim/container"
	"holdfast.dev/holdfast/test/fdbsim/state"
)

// The clusters of the recordings.
const (
	source      = "lab:8iob3tva" // $LAB/run
	destination = "lab:6xikoi6s" // $LAB/run2
	third       = "lab:9o7c2qxm" // $LAB/run3
)

// toolVersion is the release that was recorded.
const toolVersion = "7.3.48"

// lab is the place that a transcript is replayed in: its own folder, clusters and time.
type lab struct {
	t   *testing.T
	tr  *transcript
	dir string
	sim *fdbsim.Sim
	// stdout and stderr are what the replayed command printed so far.
	stdout, stderr printed
}

// printed is what a command printed, safe to read while it runs.
type printed struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (p *printed) Write(content []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.buffer.Write(content)
}

func (p *printed) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.buffer.String()
}

func newLab(t *testing.T, tr *transcript) *lab {
	dir := t.TempDir()
	l := &lab{t: t, tr: tr, dir: dir, sim: &fdbsim.Sim{Store: state.Store{Dir: filepath.Join(dir, "state")}}}
	l.at(tr.date)
	for folder, cluster := range map[string]struct{ name, port string }{
		"run": {source, "4500"}, "run2": {destination, "4510"}, "run3": {third, "4520"},
	} {
		connection := cluster.name + "@127.0.0.1:" + cluster.port
		l.write(folder+"/fdb.cluster", connection+"\n")
		// The clock of the first lab's clusters, so that recorded versions and times belong together.
		created := time.Date(2026, 11, 20, 15, 55, 30, 0, time.UTC)
		if cluster.name == destination {
			created = created.Add(4*time.Minute + 44*time.Second)
		}
		require.NoError(t, l.sim.Store.Create(cluster.name, &state.Cluster{Connection: connection, Created: created}))
		l.control(cluster.name, func(c *fdbsim.Control) { c.AgentWait = 200 * time.Millisecond })
	}
	l.write("dead.cluster", "lab:xxxxxxxx@127.0.0.1:4999\n")
	l.write("wrongid.cluster", "lab:wrongid0@127.0.0.1:4500\n")
	l.write("bad.cluster", "garbage\n")
	return l
}

// at lets the lab's time go on from a moment.
func (l *lab) at(moment time.Time) {
	require.NoError(l.t, l.sim.Store.SetClock(state.Clock{Offset: time.Until(moment)}))
}

func (l *lab) path(name string) string { return filepath.Join(l.dir, name) }

func (l *lab) write(name, content string) {
	require.NoError(l.t, os.MkdirAll(filepath.Dir(l.path(name)), 0o755))
	require.NoError(l.t, os.WriteFile(l.path(name), []byte(content), 0o644))
}

func (l *lab) control(cluster string, change func(*fdbsim.Control)) {
	require.NoError(l.t, l.sim.Control(cluster, change))
}

// run runs a command line with $LAB for the lab's folder.
func (l *lab) run(ctx context.Context, args ...string) (stdout, stderr string, code int) {
	var out, err printed
	code = l.runInto(ctx, &out, &err, args...)
	return out.String(), err.String(), code
}

func (l *lab) runInto(ctx context.Context, stdout, stderr *printed, args ...string) int {
	var expanded []string
	for _, arg := range args {
		expanded = append(expanded, strings.ReplaceAll(arg, "$LAB", l.dir))
	}
	return fdbsim.Run(ctx, fdbsim.Invocation{
		Tool: expanded[0], Args: expanded[1:], Dir: l.dir, PID: os.Getpid(), Version: toolVersion, Store: l.sim.Store,
		Stdout: stdout, Stderr: stderr,
	})
}

// agent runs an agent for a cluster until the test ends, and waits until it has written its part of status json.
func (l *lab) agent(folder, cluster string, change func(*fdbsim.Control)) {
	l.control(cluster, func(c *fdbsim.Control) {
		c.LayerPeriod, c.LayerExpiry = 100*time.Millisecond, time.Minute
		c.FirstSnapshot, c.LogFile, c.Restore = 300*time.Millisecond, 300*time.Millisecond, 500*time.Millisecond
		if change != nil {
			change(c)
		}
	})
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	var out, err printed
	done.Go(func() { l.runInto(ctx, &out, &err, "backup_agent", "-C", "$LAB/"+folder+"/fdb.cluster") })
	l.t.Cleanup(func() {
		cancel()
		done.Wait()
	})
	eventually.Succeeds(l.t, patience, func() error {
		agents, unread := l.sim.Agents(cluster)
		if unread != nil || (len(agents) == 1 && !agents[0].Updated.IsZero()) {
			return unread
		}
		return fmt.Errorf("the agent has not begun, of %d: %s", len(agents), err.String())
	})
}

// idle keeps an agent from doing anything but to say that it is there.
func idle(c *fdbsim.Control) { c.StopLogs, c.StopSnapshots, c.HoldSubmitted = true, true, true }

// answering makes a cluster have an agent that answers and does nothing.
func (l *lab) answering(cluster string) {
	require.NoError(l.t, l.sim.Store.SaveAgent(cluster, state.Agent{
		ID: container.NewUID(), PID: os.Getpid(), Version: toolVersion, Beat: time.Now(),
	}))
}

func (l *lab) change(cluster string, change func(*state.Cluster)) {
	require.NoError(l.t, l.sim.Change(cluster, func(c *state.Cluster) error {
		change(c)
		return nil
	}))
}

// cluster is the one that the command is told.
func (l *lab) cluster() string {
	file := l.tr.option("--dest-cluster-file", l.tr.option("-C", ""))
	switch {
	case strings.Contains(file, "/run2/"):
		return destination
	case strings.Contains(file, "/run3/"):
		return third
	default:
		return source
	}
}

// backup makes a backup on a tag, in a state as far as the lab's time goes.
func (l *lab) backup(tag, name string) *state.Backup {
	b := &state.Backup{
		Tag: tag, UID: container.NewUID(), State: name, URL: "file://" + l.path("backups/backup-2026-11-20-15-57-01.309416"),
		IntervalSeconds: 40, LogBytes: 253530, RangeBytes: 2681268,
	}
	l.change(l.cluster(), func(c *state.Cluster) {
		now := c.Version(l.tr.date)
		if name != state.Submitted {
			b.LogBegin, b.LogEnd = now-60_000_000, now-10_000_000
			b.Snapshot = &state.Snapshot{
				Begin: now - 15_000_000, EndTarget: now + 25_000_000, IntervalSeconds: 40, LastDispatch: now - 14_000_000, ShardsBehind: 1,
			}
		}
		if name == state.RunningDifferentially || name == state.Completed || name == state.Aborted {
			b.FirstEnd, b.SnapshotEnd = now-58_000_000, now-16_000_000
		}
		c.SetBackup(b)
	})
	return b
}
