package fdbsim

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"holdfast.dev/holdfast/test/fdbsim/state"
	"holdfast.dev/holdfast/test/fdbsim/tool"
)

//go:embed testdata/transcripts/help-*.txt testdata/transcripts/05-layers-before-any-backup.json
var recorded embed.FS

// records holds what the real tools printed and ours repeat.
func records() fs.FS {
	sub, err := fs.Sub(recorded, "testdata/transcripts")
	if err != nil {
		return recorded
	}
	return sub
}

// settingsFile lies beside the tools: they may be run without any environment.
const settingsFile = "fdbsim.json"

// settings tell a tool whose it is.
type settings struct {
	StateDir string `json:"stateDir"`
	Version  string `json:"version"`
}

// Main is the tool by whose name the program was called. It returns the exit code.
func Main() int {
	path, err := whereIs(os.Args[0])
	if err != nil {
		fmt.Fprintln(os.Stderr, "fdbsim:", err)
		return 1
	}
	var s settings
	content, err := os.ReadFile(filepath.Join(filepath.Dir(path), settingsFile))
	if err == nil {
		err = json.Unmarshal(content, &s)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "fdbsim: %v; run the tools that Install laid down\n", err)
		return 1
	}
	dir, err := os.Getwd()
	if err != nil {
		dir = "/"
	}
	go endWith(s.StateDir)
	ctx := context.Background()
	if filepath.Base(path) == tool.Agent {
		// The others die of a signal, as the real ones do.
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
		defer stop()
	}
	return tool.Run(ctx, tool.Invocation{
		Tool: filepath.Base(path), Args: os.Args[1:], Env: os.Environ(), Dir: dir, PID: os.Getpid(), Version: s.Version,
		Store: state.Store{Dir: s.StateDir}, Recorded: records(), Stdout: os.Stdout, Stderr: os.Stderr,
	})
}

// endWith ends the process when the state is gone: a command that hangs for ever shall not outlive the test that it was part of,
// should that forget it.
func endWith(stateDir string) {
	for {
		time.Sleep(time.Second)
		if _, err := os.Stat(stateDir); errors.Is(err, fs.ErrNotExist) {
			os.Exit(1)
		}
	}
}

// whereIs finds the tool's own folder. The name that it was called by tells the tool; a path that says nothing of the folder is
// looked up as the kernel knows it.
func whereIs(called string) (string, error) {
	if filepath.Base(called) != called {
		return called, nil
	}
	executable, err := os.Executable()
	if err != nil {
		return "", err
	}
	return filepath.Join(filepath.Dir(executable), called), nil
}

// Invocation is one run of a tool within the test's own process.
type Invocation = tool.Invocation

// Run runs a tool within the test's own process and returns its exit code. What hangs, hangs until the context ends, and then
// returns the code that `timeout` would.
func Run(ctx context.Context, in Invocation) int {
	in.Recorded = records()
	return tool.Run(ctx, in)
}
