package operations_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/tools"
)

// process is one of Holdfast's own, with an environment of its own.
type process struct {
	t       *testing.T
	command *exec.Cmd
	log     string
	health  string
	exited  chan struct{}
	err     error
}

func startWorker(t *testing.T, cluster string, variables ...string) *process {
	t.Helper()
	return start(t, tools.HoldfastWorker, env.HoldfastWorker, []string{"--serve=velero"}, cluster, variables)
}

func startFDBWorker(t *testing.T, cluster string, variables ...string) *process {
	t.Helper()
	return start(t, tools.HoldfastWorker, env.HoldfastFDB, []string{"--serve=fdb", "--fdb-bin-dir=" + t.TempDir()}, cluster, variables)
}

func startWatcher(t *testing.T, cluster string, variables ...string) *process {
	t.Helper()
	return start(t, tools.Holdfast, env.HoldfastWatcher, []string{"watch", "--serve=velero", "--progress-interval=1s"}, cluster, variables)
}

func start(t *testing.T, binary, user string, args []string, cluster string, variables []string) *process {
	t.Helper()
	return startBinary(t, binaries[binary], user, args, cluster, variables)
}

func startBinary(t *testing.T, binary, user string, args []string, cluster string, variables []string) *process {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &process{
		t: t, health: listener.Addr().String(), exited: make(chan struct{}),
		log: filepath.Join(t.TempDir(), filepath.Base(binary)+".log"),
	}
	require.NoError(t, listener.Close())
	log, err := os.Create(p.log)
	require.NoError(t, err)
	defer log.Close()
	//nolint:noctx // ended by signals
	p.command = exec.Command(binary, append(args, "--kubeconfig", stack.Kubeconfig(user), "--cluster-id", cluster,
		"--oadp-namespace", env.OADPNamespace, "--metrics-bind-address", "0", "--health-probe-bind-address", p.health)...)
	p.command.Env = append([]string{"HOME=" + t.TempDir(), "TEMPORAL_ADDRESS=" + stack.TemporalAddress()}, variables...)
	p.command.Stdout, p.command.Stderr = log, log
	require.NoError(t, p.command.Start())
	go func() {
		p.err = p.command.Wait()
		close(p.exited)
	}()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log of %s:\n%s", binary, p.output())
		}
		p.kill()
		env.TellPanic(os.Stderr, binary, p.log)
	})
	return p
}

func (p *process) output() string {
	p.t.Helper()
	content, err := os.ReadFile(p.log)
	require.NoError(p.t, err)
	return string(content)
}

// ready waits until every check passes, and returns the process.
func (p *process) ready() *process {
	p.t.Helper()
	eventually.Succeeds(p.t, patience, func() error {
		select {
		case <-p.exited:
			return eventually.Stop(fmt.Errorf("%s has ended: %w", p.command.Path, p.err))
		default:
		}
		ctx, cancel := context.WithTimeout(p.t.Context(), callPatience)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.health+"/readyz", nil)
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return fmt.Errorf("%s is not ready: %w", p.command.Path, err)
		}
		defer answer.Body.Close()
		if said, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != http.StatusOK {
			return errors.Join(err, fmt.Errorf("%s is not ready: %s, %s", p.command.Path, answer.Status, said))
		}
		return nil
	})
	return p
}

// terminate sends SIGTERM.
func (p *process) terminate() {
	p.t.Helper()
	require.NoError(p.t, p.command.Process.Signal(syscall.SIGTERM))
}

// awaitExit waits for the end, which must be status 0, and returns how long it took.
func (p *process) awaitExit() time.Duration {
	p.t.Helper()
	begin := time.Now()
	select {
	case <-p.exited:
	case <-time.After(patience):
		require.Fail(p.t, "it does not end", p.command.Path)
	}
	require.NoError(p.t, p.err, "want exit status 0")
	return time.Since(begin)
}

// stop ends the process as Kubernetes does.
func (p *process) stop() {
	p.t.Helper()
	p.terminate()
	p.awaitExit()
}

func (p *process) kill() {
	_ = p.command.Process.Kill() // an error means that it is gone
	select {
	case <-p.exited:
	case <-time.After(patience):
		p.t.Errorf("%s has not ended %s after it was killed", p.command.Path, patience)
	}
}
