// Package tool is the stand-in's commands: fdbbackup, fdbrestore, fdbcli and backup_agent.
package tool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast.dev/holdfast/test/fdbsim/container"
	"holdfast.dev/holdfast/test/fdbsim/state"
)

// Names of the tools.
const (
	Backup  = "fdbbackup"
	Restore = "fdbrestore"
	CLI     = "fdbcli"
	Agent   = "backup_agent"
)

// Names are all tools.
var Names = []string{Backup, Restore, CLI, Agent}

// Invocation is one run of a tool.
type Invocation struct {
	Tool    string
	Args    []string
	Env     []string // as os.Environ
	Dir     string   // the working folder
	PID     int
	Version string // such as 7.3.48
	Store   state.Store
	// Recorded holds what the real tools printed: help texts and a status document.
	Recorded fs.FS
	Stdout   io.Writer
	Stderr   io.Writer
}

// Run runs a tool and returns its exit code. What hangs, hangs until the context ends; the code is then that of `timeout`.
func Run(ctx context.Context, in Invocation) int {
	r := &run{Invocation: in}
	err := r.dispatch(ctx)
	code := 0
	var stopped *stop
	switch {
	case err == nil:
	case ctx.Err() != nil && in.Tool != Agent:
		code = killed
	case errors.As(err, &stopped):
		code = stopped.code
		fmt.Fprint(r.stderr(), stopped.text)
	default:
		code = 1
		fmt.Fprintf(r.stderr(), "Fatal Error: %v\n", err)
	}
	return r.end(ctx, code)
}

// killed is the exit code of `timeout` for a command that hung.
const killed = 124

// run is an invocation on its way.
type run struct {
	Invocation
	sub      string
	options  options
	cluster  string // "description:id"; "" when the command was told none
	fault    *state.Fault
	recorded *state.Call
	held     [2]strings.Builder // output held back until the fault after the work has passed
}

// stop ends a command with an exit code, after a text on standard error.
type stop struct {
	code int
	text string
}

func (s *stop) Error() string { return strings.TrimSpace(s.text) }

// exit ends a command with lines on standard error.
func exit(code int, lines ...string) error {
	text := ""
	for _, line := range lines {
		text += line + "\n"
	}
	return &stop{code: code, text: text}
}

// fatal ends a command as most errors do.
func fatal(class string, lines ...string) error {
	return exit(1, append(lines, "Fatal Error: "+class)...)
}

// failed is fatal for an error of a container, said twice as the tools do.
func failed(err error) error {
	var stopped *stop
	if errors.As(err, &stopped) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fatal(err.Error(), "ERROR: "+err.Error())
}

// teaser is the hint below errors of usage.
func (r *run) teaser() string { return fmt.Sprintf("Try `%s --help' for more information.", r.Tool) }

func (r *run) holdsBack() bool { return r.fault != nil && r.fault.After }

func (r *run) stdout() io.Writer {
	if r.holdsBack() {
		return &r.held[0]
	}
	return r.Stdout
}

func (r *run) stderr() io.Writer {
	if r.holdsBack() {
		return &r.held[1]
	}
	return r.Stderr
}

func (r *run) printf(format string, args ...any) { fmt.Fprintf(r.stdout(), format, args...) }

func (r *run) env(name string) string {
	for _, pair := range slices.Backward(r.Env) {
		if value, found := strings.CutPrefix(pair, name+"="); found {
			return value
		}
	}
	return ""
}

func (r *run) now() time.Time { return r.Store.Now() }

// sleep waits, unless the command is killed.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// hang waits for the end of the command.
func hang(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// begin writes the command into the journal and lets it meet its fault, if it has one.
func (r *run) begin(ctx context.Context) error {
	call := state.Call{
		ID: container.NewUID(), Cluster: r.cluster, Tool: r.Tool, Version: r.Version, Args: r.Args, PID: r.PID, Begin: time.Now(),
	}
	for _, pair := range r.Env {
		name, _, _ := strings.Cut(pair, "=")
		call.Env = append(call.Env, name)
	}
	if err := r.Store.Record(call); err != nil {
		return err
	}
	r.recorded = &call
	fault, err := r.Store.TakeFault(r.cluster, r.Tool, r.sub, r.options.text("-t"))
	if err != nil || fault == nil {
		return err
	}
	if err := sleep(ctx, fault.Delay); err != nil {
		return err
	}
	r.fault = fault
	if fault.After {
		return nil
	}
	return r.strike(ctx)
}

// strike lets the fault happen.
func (r *run) strike(ctx context.Context) error {
	switch {
	case r.fault.Hang && r.fault.HangFor > 0:
		if err := sleep(ctx, r.fault.HangFor); err != nil {
			return err
		}
	case r.fault.Hang:
		return hang(ctx)
	}
	if r.fault.Fail {
		fmt.Fprint(r.Stdout, r.fault.Stdout)
		return &stop{code: r.fault.ExitCode, text: r.fault.Stderr}
	}
	return nil
}

// end lets a fault after the work happen and closes the record.
func (r *run) end(ctx context.Context, code int) int {
	if r.holdsBack() && code != killed {
		err := r.strike(ctx)
		var stopped *stop
		switch {
		case errors.As(err, &stopped):
			fmt.Fprint(r.Stderr, stopped.text)
			code = stopped.code
		case err != nil:
			code = killed
		default:
			fmt.Fprint(r.Stdout, r.held[0].String())
			fmt.Fprint(r.Stderr, r.held[1].String())
		}
	}
	if r.recorded != nil && code != killed {
		ended := state.Call{ID: r.recorded.ID, Cluster: r.cluster, End: time.Now(), ExitCode: code}
		if err := r.Store.Record(ended); err != nil {
			fmt.Fprintf(r.Stderr, "fdbsim: %v\n", err)
		}
	}
	return code
}

// stale says whether this version has the defect of the plain describe: fixed in 7.3.64.
func (r *run) stale() bool {
	var numbers [3]int
	for i, part := range strings.SplitN(r.Version, ".", 3) {
		numbers[i], _ = strconv.Atoi(part)
	}
	return slices.Compare(numbers[:], []int{7, 3, 64}) < 0
}
