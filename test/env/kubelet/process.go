package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"holdfast.dev/holdfast/test/env/spawn"
)

const (
	codeKilled       = 128 + int(syscall.SIGKILL)
	codeNotStarted   = 128
	maxMessage       = 4096
	maxMessageOfLogs = 2048
)

// killGrace is how long an execution may take to end after it was killed, on however busy a machine; what takes longer is left
// alone.
const killGrace = time.Minute

// execution is one run of a container: a process group of its own, or a function.
type execution struct {
	pid    int // 0 of a function
	exited chan struct{}
	code   int           // once exited
	cancel func()        // of a function
	killed chan struct{} // told by kill, for a function
}

// execute starts a program with its output in log, which it closes at the end.
func (k *Kubelet) execute(p program, env environment, mounts mounts, dir string, log *os.File) (*execution, error) {
	if p.run != nil {
		return executeFunction(p, env, mounts, log), nil
	}
	defer log.Close()
	//nolint:noctx // it is stopped by process group
	cmd := exec.Command(p.path, p.args...)
	cmd.Env, cmd.Dir = env.strings(mounts), dir
	cmd.Stdout, cmd.Stderr = log, log
	if err := spawn.Start(cmd, nil); err != nil {
		return nil, err
	}
	e := &execution{pid: cmd.Process.Pid, exited: make(chan struct{})}
	k.reaper.add(e.pid)
	go func() {
		e.code = exitCode(cmd.Wait())
		_ = syscall.Kill(-e.pid, syscall.SIGKILL) // what it left behind ends with the container
		k.reaper.remove(e.pid)
		close(e.exited)
	}()
	return e, nil
}

func executeFunction(p program, env environment, mounts mounts, log io.WriteCloser) *execution {
	ctx, cancel := context.WithCancel(context.Background())
	e := &execution{exited: make(chan struct{}), cancel: cancel, killed: make(chan struct{})}
	result := make(chan int, 1)
	go func() {
		defer log.Close()
		result <- p.run(ctx, ImageCall{Args: p.args, Env: env.values(), Output: log, Path: mounts.path})
	}()
	go func() {
		defer close(e.exited)
		select {
		case e.code = <-result:
		case <-e.killed:
			e.code = codeKilled
		}
	}()
	return e
}

// terminate asks it to end.
func (e *execution) terminate() {
	if e.pid == 0 {
		e.cancel()
		return
	}
	_ = syscall.Kill(-e.pid, syscall.SIGTERM) // an error means that it is gone
	_ = syscall.Kill(-e.pid, syscall.SIGCONT) // a paused process reads signals only now
}

// kill ends it. Of several callers only the first matters.
func (e *execution) kill() {
	if e.pid == 0 {
		e.cancel()
		select {
		case e.killed <- struct{}{}:
		case <-e.exited:
		}
		return
	}
	select {
	case <-e.exited: // the number may be another's by now
	default:
		_ = syscall.Kill(-e.pid, syscall.SIGKILL) // an error means that it is gone
	}
}

// wait returns the exit code. It terminates the execution when ending ends, and kills it when killing does.
func (e *execution) wait(ending, killing context.Context) int {
	select {
	case <-e.exited:
		return e.code
	case <-ending.Done():
		e.terminate()
	}
	select {
	case <-e.exited:
	case <-killing.Done():
		e.kill()
		select {
		case <-e.exited:
		case <-time.After(killGrace):
			return codeKilled // and not its own code, which nobody knows yet
		}
	}
	return e.code
}

func exitCode(err error) int {
	if err == nil {
		return 0
	}
	var failed *exec.ExitError
	if !errors.As(err, &failed) {
		return codeNotStarted
	}
	if status, ok := failed.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return failed.ExitCode()
}

// reaperScript reads "add GROUP" and "remove GROUP" until the other side is gone, and then kills the groups that are left.
const reaperScript = `groups=
while read -r what group; do
	rest=
	for g in $groups; do [ "$g" = "$group" ] || rest="$rest $g"; done
	[ "$what" = add ] && rest="$rest $group"
	groups=$rest
done
for g in $groups; do kill -s KILL -- "-$g"; done`

// reaper is a process that outlives this one by a moment, to kill the process groups of containers when this one dies: the
// kernel then kills only the first process of each group.
type reaper struct {
	cmd   *exec.Cmd
	input io.WriteCloser
}

func newReaper() (*reaper, error) {
	cmd := exec.Command("/bin/sh", "-c", reaperScript) //nolint:noctx // it ends when its input does
	cmd.Env = []string{"PATH=/usr/bin:/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt from the terminal is not for it
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &reaper{cmd: cmd, input: input}, nil
}

func (r *reaper) add(group int)    { r.tell("add", group) }
func (r *reaper) remove(group int) { r.tell("remove", group) }

func (r *reaper) tell(what string, group int) {
	_, _ = fmt.Fprintf(r.input, "%s %d\n", what, group) // one write of a pipe is whole; without a reaper Stop still kills
}

func (r *reaper) close() {
	_ = r.input.Close()
	_ = r.cmd.Wait()
}
