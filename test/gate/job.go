package gate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Job is one run of `go test`.
type Job struct {
	Name     string // of its log; one run of the gate has no other of this name
	Packages []string
	Tests    []string // all if empty
	Fresh    bool     // no cached result counts
	Count    int      // of runs of each test in one process; once if 0
	Timeout  time.Duration
}

// GoTest runs jobs by gotestsum.
type GoTest struct {
	Gotestsum string
	Dir       string   // the module from which packages are named
	Flags     []string // of go test
	Env       []string // added to the environment
	Logs      string   // the folder of logs
	Out       io.Writer
}

// grace is what `go test` has beyond its timeout to end by itself, and what all have that are asked to end.
const grace = time.Minute

// Run runs a job and returns what its packages came to, each once, also of those that never began.
func (g GoTest) Run(ctx context.Context, job Job) ([]Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, job.Timeout*time.Duration(max(1, len(job.Packages)))+grace)
	defer cancel()
	events := filepath.Join(g.Logs, job.Name+".json")
	log, err := os.Create(g.LogOf(job))
	if err != nil {
		return nil, fmt.Errorf("write the log of %s: %w", job.Name, err)
	}
	defer log.Close()
	components := filepath.Join(g.Logs, job.Name+"-components")
	command := exec.CommandContext(ctx, g.Gotestsum, g.arguments(job, events)...)
	command.Dir = g.Dir
	command.Env = append(append(os.Environ(), g.Env...), "HOLDFAST_TEST_LOGS="+components)
	command.Stdout = io.MultiWriter(g.Out, log)
	command.Stderr = command.Stdout
	// A group of its own ends whole, and not by the Ctrl-C that this process still has to report about.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGTERM) }
	command.WaitDelay = grace
	runErr := command.Run()
	if command.Process != nil {
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL) // nothing, if the group has ended
	}
	outcomes, err := g.outcomes(job, events, runErr)
	if err == nil && !slices.ContainsFunc(outcomes, func(o Outcome) bool { return !o.Passed() }) {
		err = os.RemoveAll(components)
	}
	return outcomes, err
}

// LogOf is the file with the output of a job.
func (g GoTest) LogOf(job Job) string { return filepath.Join(g.Logs, job.Name+".log") }

func (g GoTest) arguments(job Job, events string) []string {
	format := "testname" // of a stack a line each, since they come slowly
	if len(job.Packages) > 1 {
		format = "pkgname"
	}
	args := append([]string{"--format", format, "--jsonfile", events, "--"}, g.Flags...)
	args = append(args, "-timeout", job.Timeout.String())
	isCount := func(flag string) bool { return strings.HasPrefix(strings.TrimLeft(flag, "-"), "count") }
	if job.Count > 0 || (job.Fresh && !slices.ContainsFunc(g.Flags, isCount)) { // of two the last one counts
		args = append(args, "-count", strconv.Itoa(max(1, job.Count)))
	}
	if len(job.Tests) > 0 {
		args = append(args, "-run", Pattern(job.Tests))
	}
	return append(args, job.Packages...)
}

// outcomes reads the events of a job. It is an error of the gate's own if gotestsum fails although every package passed.
func (g GoTest) outcomes(job Job, events string, runErr error) ([]Outcome, error) {
	file, err := os.Open(events)
	if err != nil {
		return nil, errors.Join(err, runErr)
	}
	defer file.Close()
	outcomes, err := Outcomes(file)
	if err != nil {
		return nil, err
	}
	for _, pkg := range job.Packages {
		if !slices.ContainsFunc(outcomes, func(o Outcome) bool { return o.Package == pkg }) {
			outcomes = append(outcomes, Outcome{Package: pkg, Cause: NoTest, Said: "it did not begin"})
		}
	}
	if runErr != nil && !slices.ContainsFunc(outcomes, func(o Outcome) bool { return !o.Passed() }) {
		return nil, fmt.Errorf("%s: %w, although every package passed", job.Name, runErr)
	}
	return outcomes, nil
}

// number is what Go appends to the name of a subtest that another one of the same test has.
var number = regexp.MustCompile(`#[0-9]{2,}(/|$)`)

// Unnumbered is the name of a test without such numbers: which of these subtests has which may differ from run to run.
func Unnumbered(test string) string { return number.ReplaceAllString(test, "$1") }

// Pattern is the value of -run for exactly these tests and subtests, all of a name, and what is below them.
func Pattern(tests []string) string {
	patterns := make([]string, 0, len(tests))
	for _, test := range tests {
		var levels []string
		for level := range strings.SplitSeq(Unnumbered(test), "/") {
			levels = append(levels, "^"+regexp.QuoteMeta(level)+"(#[0-9]+)?$")
		}
		patterns = append(patterns, strings.Join(levels, "/"))
	}
	return strings.Join(patterns, "|")
}
