package env

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"holdfast.dev/holdfast/test/env/spawn"
)

const (
	// stopGrace is how long Process.Stop waits after SIGTERM before it kills.
	stopGrace = 10 * time.Second
	// killGrace is how long a process may take to end after SIGKILL: only what never ends takes longer, on however busy a machine.
	killGrace = time.Minute
	// readyTimeout is how long a component may take to become ready; generous, because machines are shared.
	readyTimeout = 90 * time.Second
	readyPoll    = 50 * time.Millisecond
	probeTimeout = 2 * time.Second
)

// command says how to run a component and how to see that it serves.
type command struct {
	name      string
	kind      string // what it is, where there may be several: "worker" for "worker-2"
	path      string
	args      []string
	env       []string
	logPath   string
	as        *syscall.Credential // another user than the present one
	addresses map[string]string   // by what is served there: "metrics", "health"
	ready     func(context.Context) error
	// readyTimeout is how long it may take to become ready, if not the usual time.
	readyTimeout time.Duration
	// again is how often it is started once more where it ends before it is ready.
	again int
	// died is told about every run that ends without having been asked to.
	died func(*Process)
}

// Process is one component of the stack: a child process in a process group of its own, and its log file. It keeps its
// arguments and ports over restarts. Its methods may be called from several goroutines.
type Process struct {
	command command

	lifecycle sync.Mutex // held while it starts or stops
	mu        sync.Mutex // guards run and used
	run       *run
	used      time.Duration // CPU time of the runs that have ended
}

// run is one life of a Process.
type run struct {
	pid    int
	exited chan struct{} // closed when err is set
	err    error
	asked  bool // somebody wanted it to end; guarded by Process.mu
}

// Name returns the component's name, such as "kube-apiserver".
func (p *Process) Name() string { return p.command.name }

// LogPath returns the file with everything the component printed, over all its restarts.
func (p *Process) LogPath() string { return p.command.logPath }

// Address returns host:port of something the component serves ("health" or "metrics" of Holdfast's own), or "".
func (p *Process) Address(what string) string { return p.command.addresses[what] }

// PID returns the process ID of the current or last run, 0 before the first.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run == nil {
		return 0
	}
	return p.run.pid
}

// Running tells whether the process exists; a paused one does.
func (p *Process) Running() bool {
	r := p.current()
	if r == nil {
		return false
	}
	select {
	case <-r.exited:
		return false
	default:
		return true
	}
}

// Pause stops the component's processes with SIGSTOP and returns when it stands still: connections stay open and nobody
// answers.
func (p *Process) Pause() error {
	// Its children stop after it: while a child that was forked by vfork(2) has not begun its own program, its parent cannot stop.
	if err := p.send(p.PID(), syscall.SIGSTOP); err != nil {
		return err
	}
	if err := spawn.AwaitStopped(p.PID()); err != nil {
		return fmt.Errorf("wait until %s stands still: %w", p.Name(), err)
	}
	return p.signal(syscall.SIGSTOP)
}

// Resume lets a paused component go on.
func (p *Process) Resume() error { return p.signal(syscall.SIGCONT) }

// Kill ends the component with SIGKILL and returns when it is gone. A component that does not run is left alone.
func (p *Process) Kill() error {
	p.lifecycle.Lock()
	defer p.lifecycle.Unlock()
	return p.end(0)
}

// Stop ends the component with SIGTERM, with SIGKILL if that takes longer than 10 s, and returns when it is gone.
func (p *Process) Stop() error {
	p.lifecycle.Lock()
	defer p.lifecycle.Unlock()
	return p.end(stopGrace)
}

// Restart stops the component if it runs, starts it with the same arguments and ports, and returns when it is ready.
func (p *Process) Restart(ctx context.Context) error {
	p.lifecycle.Lock()
	defer p.lifecycle.Unlock()
	if err := p.end(stopGrace); err != nil {
		return err
	}
	return p.start(ctx)
}

// RestartWith is Restart with more arguments, for this life of the component. Of a flag given twice the last one counts.
func (p *Process) RestartWith(ctx context.Context, more ...string) error {
	p.lifecycle.Lock()
	defer p.lifecycle.Unlock()
	if err := p.end(stopGrace); err != nil {
		return err
	}
	before := p.command.args
	p.command.args = slices.Concat(before, more)
	defer func() { p.command.args = before }()
	return p.start(ctx)
}

// WaitReady returns when the component answers, for use after Resume. The error carries the end of its log.
func (p *Process) WaitReady(ctx context.Context) error {
	r := p.current()
	if r == nil {
		return fmt.Errorf("%s was never started", p.Name())
	}
	return p.waitReady(ctx, r)
}

// CPU returns the CPU time that the component has used in all runs that have ended, with that of its children which it waited
// for.
func (p *Process) CPU() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used
}

func (p *Process) current() *run {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.run
}

// start runs the command and waits until it is ready. A component that does not become ready is killed.
func (p *Process) start(ctx context.Context) error {
	for again := p.command.again; ; again-- {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("start %s: %w", p.Name(), err)
		}
		r, err := p.spawn()
		if err != nil {
			return fmt.Errorf("start %s: %w", p.Name(), err)
		}
		err = p.waitReady(ctx, r)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, errEnded) || again == 0:
			return errors.Join(err, p.end(0))
		}
	}
}

func (p *Process) spawn() (*run, error) {
	log, err := os.OpenFile(p.command.logPath, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	heading := fmt.Sprintln("===", time.Now().Format(time.RFC3339), p.command.path, strings.Join(p.command.args, " "))
	if _, err := log.WriteString(heading); err != nil {
		return nil, err
	}
	//nolint:noctx // it outlives the context of its start, and is stopped by process group
	cmd := exec.Command(p.command.path, p.command.args...)
	cmd.Env = p.command.env
	cmd.Stdout, cmd.Stderr = log, log
	if err := spawn.Start(cmd, p.command.as); err != nil {
		return nil, err
	}
	r := &run{pid: cmd.Process.Pid, exited: make(chan struct{})}
	p.mu.Lock()
	p.run = r
	p.mu.Unlock()
	go p.awaitExit(cmd, r)
	return r, nil
}

func (p *Process) awaitExit(cmd *exec.Cmd, r *run) {
	r.err = cmd.Wait()
	p.mu.Lock()
	if ended := cmd.ProcessState; ended != nil {
		p.used += ended.UserTime() + ended.SystemTime()
	}
	asked := r.asked
	p.mu.Unlock()
	close(r.exited)
	if !asked && p.command.died != nil {
		p.command.died(p)
	}
}

// end stops the current run: SIGTERM and a grace, or SIGKILL at once when grace is 0. What is left of the process group, such
// as Velero's plugins, is killed in any case.
func (p *Process) end(grace time.Duration) error {
	p.mu.Lock()
	r := p.run
	if r != nil {
		r.asked = true
	}
	p.mu.Unlock()
	if r == nil {
		return nil
	}
	if grace > 0 && p.Running() {
		_ = syscall.Kill(-r.pid, syscall.SIGTERM) // an error means that it is gone
		_ = syscall.Kill(-r.pid, syscall.SIGCONT) // a paused process reads signals only now
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-r.exited:
		case <-timer.C:
		}
	}
	_ = syscall.Kill(-r.pid, syscall.SIGKILL)
	select {
	case <-r.exited:
		return nil
	case <-time.After(killGrace):
		return fmt.Errorf("%s (process %d) does not end, even after SIGKILL", p.Name(), r.pid)
	}
}

func (p *Process) signal(sig syscall.Signal) error { return p.send(-p.PID(), sig) }

// send is kill(2) of the component's process, or of its process group.
func (p *Process) send(pid int, sig syscall.Signal) error {
	if !p.Running() {
		return fmt.Errorf("%s is not running", p.Name())
	}
	if err := syscall.Kill(pid, sig); err != nil {
		return fmt.Errorf("send %s to %s: %w", sig, p.Name(), err)
	}
	return nil
}
