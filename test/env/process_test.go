package env

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/k8s/eventually"
)

func shell(t *testing.T, script string, ready func(context.Context) error) *Process {
	t.Helper()
	p := &Process{command: command{
		name: "sample", path: "/bin/sh", args: []string{"-c", script}, logPath: filepath.Join(t.TempDir(), "sample.log"), ready: ready,
	}}
	t.Cleanup(func() { require.NoError(t, p.Kill()) })
	return p
}

func always(context.Context) error { return nil }

func TestProcessThatEndsEarlyShowsItsLog(t *testing.T) {
	p := shell(t, "echo the disk is full; exit 3", func(context.Context) error { return errors.New("no answer") })
	err := p.Restart(t.Context())
	require.ErrorContains(t, err, "sample ended before it was ready: exit status 3")
	require.ErrorContains(t, err, "the disk is full")
}

func TestProcessStopTakesGrandchildren(t *testing.T) {
	pidFile := filepath.Join(t.TempDir(), "pid")
	p := shell(t, "sleep 1000 & echo $! > "+pidFile+".new; mv "+pidFile+".new "+pidFile+"; wait", func(context.Context) error {
		_, err := os.Stat(pidFile)
		return err
	})
	require.NoError(t, p.Restart(t.Context()))
	require.NoError(t, p.Pause())
	require.NoError(t, p.Stop())
	require.False(t, p.Running())
	content, err := os.ReadFile(pidFile)
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	require.NoError(t, err)
	eventually.IsTrue(t, time.Minute, "the grandchild has ended", func() bool { return !alive(pid) })
}

// A paused process does nothing more, not even on a busy machine: its counter stands still from the moment Pause returns.
func TestAPausedProcessStandsStill(t *testing.T) {
	counter := filepath.Join(t.TempDir(), "counter")
	p := shell(t, "while true; do echo >> "+counter+"; done", func(context.Context) error {
		_, err := os.Stat(counter)
		return err
	})
	require.NoError(t, p.Restart(t.Context()))
	size := func() int64 {
		info, err := os.Stat(counter)
		require.NoError(t, err)
		return info.Size()
	}
	for range 20 {
		require.NoError(t, p.Pause())
		before := size()
		time.Sleep(5 * time.Millisecond)
		require.Equal(t, before, size())
		require.NoError(t, p.Resume())
		eventually.IsTrue(t, time.Minute, "it counts on", func() bool { return size() > before })
	}
}

// A process that starts others all the time, as Velero does its plugins, stands still too.
func TestAProcessIsPausedWhileItStartsAnother(t *testing.T) {
	p := shell(t, "while true; do /bin/true; done", always)
	require.NoError(t, p.Restart(t.Context()))
	for range 200 {
		require.NoError(t, p.Pause())
		require.NoError(t, p.Resume())
	}
}

func TestProcessThatIgnoresTermIsKilled(t *testing.T) {
	trapped := filepath.Join(t.TempDir(), "trapped")
	p := shell(t, "trap '' TERM; touch "+trapped+"; while true; do sleep 0.1; done", func(context.Context) error {
		_, err := os.Stat(trapped)
		return err
	})
	require.NoError(t, p.Restart(t.Context()))
	begin := time.Now()
	p.lifecycle.Lock()
	err := p.end(200 * time.Millisecond)
	p.lifecycle.Unlock()
	require.NoError(t, err)
	require.False(t, p.Running())
	require.GreaterOrEqual(t, time.Since(begin), 200*time.Millisecond)
}

func TestProcessDeathIsReportedOnlyWhenNobodyAskedForIt(t *testing.T) {
	died := make(chan *Process, 2)
	p := shell(t, "sleep 1000", always)
	p.command.died = func(p *Process) { died <- p }
	require.NoError(t, p.Restart(t.Context()))
	require.NoError(t, p.Restart(t.Context()), "a restart is asked for")
	require.NoError(t, syscall.Kill(p.PID(), syscall.SIGKILL))
	select {
	case dead := <-died:
		require.Equal(t, p, dead)
	case <-time.After(time.Minute):
		require.Fail(t, "nobody said that it was killed")
	}
	require.Empty(t, died)
}

func TestStartOfACancelledContextStartsNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := shell(t, "sleep 1000", always)
	require.ErrorIs(t, p.Restart(ctx), context.Canceled)
	require.False(t, p.Running())
}

// The test runs itself as a second process that starts a child and is then killed without warning.
func TestChildrenDieWithTheirParent(t *testing.T) {
	if pidFile := os.Getenv("HOLDFAST_TEST_PID_FILE"); pidFile != "" {
		p := shell(t, "echo $$ > "+pidFile+".tmp; mv "+pidFile+".tmp "+pidFile+"; exec sleep 1000", always)
		require.NoError(t, p.Restart(t.Context()))
		select {}
	}
	pidFile := filepath.Join(t.TempDir(), "pid")
	parent := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestChildrenDieWithTheirParent$")
	parent.Env = append(os.Environ(), "HOLDFAST_TEST_PID_FILE="+pidFile)
	require.NoError(t, parent.Start())
	var content []byte
	eventually.Succeeds(t, time.Minute, func() (err error) {
		content, err = os.ReadFile(pidFile)
		return err
	})
	require.NoError(t, parent.Process.Kill())
	_ = parent.Wait() // its error is the kill
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	require.NoError(t, err)
	eventually.IsTrue(t, time.Minute, "the child has ended", func() bool { return !alive(pid) })
}

func TestWhatEndsBeforeItIsReadyIsStartedAgainAsOftenAsItMay(t *testing.T) {
	for name, test := range map[string]struct {
		again int
		wrong string
	}{
		"often enough":     {again: 2},
		"not often enough": {again: 1, wrong: "sample ended before it was ready: exit status 1"},
	} {
		t.Run(name, func(t *testing.T) {
			tries := filepath.Join(t.TempDir(), "tries")
			third := func(context.Context) error {
				if content, err := os.ReadFile(tries); err != nil || len(content) < 3 {
					return errors.New("no answer")
				}
				return nil
			}
			p := shell(t, fmt.Sprintf("printf x >> %[1]s; test $(wc -c < %[1]s) -ge 3 && sleep 60; exit 1", tries), third)
			p.command.again = test.again
			err := p.Restart(t.Context())
			if test.wrong != "" {
				require.ErrorContains(t, err, test.wrong)
				require.False(t, p.Running())
				return
			}
			require.NoError(t, err)
			require.True(t, p.Running())
		})
	}
}

func TestPortsAreFreeDistinctAndNotEphemeral(t *testing.T) {
	taken, err := freePorts.take(2 * portsInBlock)
	require.NoError(t, err)
	seen := map[int]bool{}
	for _, port := range taken {
		require.False(t, seen[port])
		seen[port] = true
		require.Less(t, port, firstEphemeralPort())
		require.True(t, portFree(address(port)))
	}
}

func TestNobodyElsesPortIsHandedOut(t *testing.T) {
	var one, other ports // as in two processes
	seen := map[int]bool{}
	for range portsInBlock + 1 {
		for _, p := range []*ports{&one, &other} {
			port, err := p.next()
			require.NoError(t, err)
			require.False(t, seen[port], port)
			seen[port] = true
		}
	}
	for _, holder := range slices.Concat(one.held, other.held) {
		require.NoError(t, holder.Close())
	}
}

// alive does not count a process that is dead and only waits for its parent to notice.
func alive(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z")
}
