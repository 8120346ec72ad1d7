package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// recent is how many runs of a package count for maxForgiven.
	recent = 10
	// maxForgiven is how many of these may have forgiven a test.
	maxForgiven = 3
)

// Run is a line of the ledger: one run of the gate.
type Run struct {
	Time     time.Time          `json:"time"`
	Commit   string             `json:"commit"`
	Stage    string             `json:"stage"`
	Load     float64            `json:"load"`     // the mean of the load averages while it ran
	Pressure float64            `json:"pressure"` // the share of time for which something waited for a CPU, in percent
	Seconds  map[string]float64 `json:"seconds"`  // of each package that ran
	Failed   []Entry            `json:"failed,omitempty"`
	Refused  bool               `json:"refused,omitempty"`
}

// Whole is the stage of a Run that says that all stages have passed at its commit.
const Whole = "whole"

func allPassed(runs []Run, commit string) bool {
	return slices.ContainsFunc(runs, func(run Run) bool { return run.Stage == Whole && run.Commit == commit })
}

// Passed notes in the ledger that all stages have passed at a commit, unless that is no more what is checked out, or something
// has been edited: .ci/run calls it at its end, with the commit of its begin.
func Passed(ctx context.Context, commit string) error {
	root, folder, err := places()
	if err != nil {
		return err
	}
	edited, err := git(ctx, root, "status", "--porcelain")
	if err != nil || edited != "" {
		return err
	}
	head, err := git(ctx, root, "rev-parse", "HEAD")
	if err != nil || strings.TrimSpace(head) != commit {
		return err
	}
	return OpenLedger(folder).Add(Run{Time: time.Now().UTC(), Commit: commit, Stage: Whole})
}

// Entry is what failed in a run at least once.
type Entry struct {
	Package  string  `json:"package"`
	Test     string  `json:"test,omitempty"` // the whole package if empty
	Failed   int     `json:"failed"`
	Attempts int     `json:"attempts"`
	Forgiven bool    `json:"forgiven"`
	Load     float64 `json:"load"` // when it had failed first
	Log      string  `json:"log,omitempty"`
}

// Ledger is the record of runs on this machine, in the cache folder.
type Ledger struct{ path string }

// OpenLedger returns the ledger in a folder.
func OpenLedger(folder string) Ledger { return Ledger{filepath.Join(folder, "ledger.jsonl")} }

// Runs returns all runs, the oldest first. A line that cannot be read (its writer was killed) is passed over.
func (l Ledger) Runs() ([]Run, error) {
	content, err := os.ReadFile(l.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the ledger: %w", err)
	}
	var runs []Run
	for line := range strings.Lines(string(content)) {
		var run Run
		if json.Unmarshal([]byte(line), &run) == nil {
			runs = append(runs, run)
		}
	}
	return runs, nil
}

// Add appends a run, with one write. The line before may have no end.
func (l Ledger) Add(run Run) (err error) {
	line, err := json.Marshal(run)
	if err != nil {
		return fmt.Errorf("write the ledger: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(l.path), 0o755); err != nil {
		return fmt.Errorf("write the ledger: %w", err)
	}
	file, err := os.OpenFile(l.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("write the ledger: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	_, err = fmt.Fprintf(file, "\n%s\n", line)
	return err
}

// Last prints what failed most recently, at most n lines, the newest last.
func Last(out io.Writer, runs []Run, n int) {
	var lines []string
	for _, run := range runs {
		for _, entry := range run.Failed {
			word := "refused"
			if entry.Forgiven {
				word = "forgiven"
			}
			lines = append(lines, fmt.Sprintf("  %s %.9s %-8s %s, failed %d of %d, load %.0f, pressure %.0f %%, log %s",
				run.Time.Format("2006-01-02 15:04"), run.Commit, word, entry.name(), entry.Failed, entry.Attempts, entry.Load,
				run.Pressure, entry.Log))
		}
	}
	if len(lines) == 0 {
		return
	}
	fmt.Fprintln(out, "What failed once or more in the runs on this machine, the newest last:")
	for _, line := range lines[max(0, len(lines)-n):] {
		fmt.Fprintln(out, line)
	}
}

func (e Entry) name() string {
	if e.Test == "" {
		return Short(e.Package) + " (whole)"
	}
	return Short(e.Package) + " " + e.Test
}

// Strictness is the rule for which tests there is no forgiveness: new ones, those past their date, and those that were forgiven
// in three of the last ten runs of their package.
func Strictness(changed map[string][]string, flakes []Flake, runs []Run, now time.Time) Strict {
	known := map[string]string{}
	for folder, functions := range changed {
		for _, function := range functions {
			known[folder+" "+function] = "it is new or changed, and must pass three times"
		}
	}
	for _, flake := range flakes {
		if flake.Expired(now) {
			known[flake.Package+" "+flake.Test] = "test/flakes.txt forgave it until " + flake.Expires.Format(time.DateOnly)
		}
	}
	return func(pkg, test string) string {
		if why := known[Short(pkg)+" "+Function(test)]; why != "" {
			return why
		}
		if count := forgivenIn(runs, pkg, Function(test)); count >= maxForgiven {
			return fmt.Sprintf("it was forgiven in %d of the last %d runs", count, recent)
		}
		return ""
	}
}

// inStage returns the runs of a stage: a package may run in two of them.
func inStage(runs []Run, stage string) []Run {
	return slices.DeleteFunc(slices.Clone(runs), func(run Run) bool { return run.Stage != stage })
}

// forgivenIn counts the recent runs of a package in which one of its test functions was forgiven.
func forgivenIn(runs []Run, pkg, function string) (count int) {
	seen := 0
	for i := len(runs) - 1; i >= 0 && seen < recent; i-- {
		if _, ran := runs[i].Seconds[pkg]; !ran {
			continue
		}
		seen++
		for _, entry := range runs[i].Failed {
			if entry.Forgiven && entry.Package == pkg && Function(entry.Test) == function {
				count++
				break
			}
		}
	}
	return count
}

// Short is a package's folder in the checkout.
func Short(pkg string) string { return strings.TrimPrefix(pkg, module+"/") }

const module = "holdfast.dev/holdfast"
