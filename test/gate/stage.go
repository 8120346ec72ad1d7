package gate

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

// Stage is one run of the gate: jobs, in lanes, and what follows from what they come to.
type Stage struct {
	Name    string
	Jobs    []Job // the longest first
	Repeats []Job // of new and changed tests: each has to pass
	Lanes   int
	Forgive bool // false: whatever fails is refused
	Strict  Strict
	// Passed is called with a package that has passed, its new and changed tests three times, as soon as that is known: a stage
	// that is stopped has shown it.
	Passed func(Outcome) error
	// Run runs a job, LogOf names its log.
	Run   func(context.Context, Job) ([]Outcome, error)
	LogOf func(Job) string
	Out   io.Writer
}

// Result is what a stage came to.
type Result struct {
	Refused  []string
	Verdicts []Entry
	Proved   []string // a line for each package that did not run
	Tests    int      // test functions that ran
	Skipped  int      // of these
	Warned   []string
	Seconds  map[string]float64
}

// Go runs the stage. An error is one of the gate's own.
func (s Stage) Go(ctx context.Context) (Result, error) {
	result := Result{Seconds: map[string]float64{}}
	ran, err := s.inLanes(ctx, append(slices.Clone(s.Jobs), s.Repeats...))
	if err != nil {
		return result, err
	}
	var first []Outcome
	logs := map[string]string{}
	for i, job := range append(slices.Clone(s.Jobs), s.Repeats...) {
		for _, o := range ran[i] {
			if i >= len(s.Jobs) {
				result.repeated(o, s.LogOf(job))
				continue
			}
			first = append(first, o)
			logs[o.Package] = s.LogOf(job)
			if !o.Cached {
				result.Seconds[o.Package] += o.Seconds
			}
			result.Tests += o.Ran
			result.Skipped += o.Skipped
			result.Warned = append(result.Warned, o.Warned...)
		}
	}
	refused, again := Decide(first, s.Strict)
	result.Refused = append(result.Refused, refused...)
	for _, o := range first {
		runsAgain := func(rerun Rerun) bool { return rerun.Package == o.Package }
		if !o.Passed() && !slices.ContainsFunc(again, runsAgain) {
			result.failedOnce(Rerun{Package: o.Package, Tests: o.Failed}, logs[o.Package])
		}
	}
	if !s.Forgive || len(result.Refused) > 0 {
		for _, rerun := range again {
			result.Refused = append(result.Refused, fmt.Sprintf("%s, not run again: %s", rerun.What(), logs[rerun.Package]))
			result.failedOnce(rerun, logs[rerun.Package])
		}
		return result, nil
	}
	return result, s.runAgain(ctx, again, logs, &result)
}

// repeated notes what another run of new or changed tests came to.
func (r *Result) repeated(o Outcome, log string) {
	if o.Passed() {
		return
	}
	r.Refused = append(r.Refused, fmt.Sprintf("%s: new or changed tests must pass three times: %s %s, log %s",
		Short(o.Package), o.Cause, cmp.Or(o.Said, strings.Join(o.Failed, ", ")), log))
	r.failedOnce(Rerun{Package: o.Package, Tests: o.Failed}, log)
}

// failedOnce notes what failed and did not run again.
func (r *Result) failedOnce(rerun Rerun, log string) {
	tests := rerun.Tests
	if len(tests) == 0 {
		tests = []string{""}
	}
	for _, test := range tests {
		r.Verdicts = append(r.Verdicts, Entry{Package: rerun.Package, Test: test, Failed: 1, Attempts: 1, Load: Load(), Log: log})
	}
}

// inLanes runs jobs, so many at a time, in their order, and returns the outcomes of each.
func (s Stage) inLanes(ctx context.Context, jobs []Job) ([][]Outcome, error) {
	outcomes, errs := make([][]Outcome, len(jobs)), make([]error, len(jobs))
	passing := newPassing(jobs, s.Passed)
	next := make(chan int)
	var lanes sync.WaitGroup
	for range max(1, s.Lanes) {
		lanes.Go(func() {
			for i := range next {
				if outcomes[i], errs[i] = s.Run(ctx, jobs[i]); errs[i] == nil {
					errs[i] = passing.add(outcomes[i], i < len(s.Jobs))
				}
			}
		})
	}
	for i := range jobs {
		next <- i
	}
	close(next)
	lanes.Wait()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("%s was stopped; %s", s.Name, unfinished(outcomes))
	}
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return outcomes, nil
}

// passing finds out when a package has passed all of its jobs.
type passing struct {
	sync.Mutex

	left   map[string]int // jobs of a package
	failed map[string]bool
	first  map[string]Outcome
	passed func(Outcome) error
}

func newPassing(jobs []Job, passed func(Outcome) error) *passing {
	p := &passing{left: map[string]int{}, failed: map[string]bool{}, first: map[string]Outcome{}, passed: passed}
	for _, job := range jobs {
		for _, pkg := range job.Packages {
			p.left[pkg]++
		}
	}
	return p
}

// add adds what a job came to. The first one of a package has all of its tests, the others have the new and changed ones.
func (p *passing) add(outcomes []Outcome, first bool) error {
	p.Lock()
	defer p.Unlock()
	for _, o := range outcomes {
		p.left[o.Package]--
		p.failed[o.Package] = p.failed[o.Package] || !o.Passed()
		if first {
			p.first[o.Package] = o
		}
		if p.passed == nil || p.failed[o.Package] || p.left[o.Package] > 0 {
			continue
		}
		if err := p.passed(p.first[o.Package]); err != nil {
			return err
		}
	}
	return nil
}

// unfinished names what ran when a stage was stopped.
func unfinished(outcomes [][]Outcome) string {
	var running []string
	for _, o := range slices.Concat(outcomes...) {
		if o.Cause == NoTest {
			running = append(running, Short(o.Package)+": "+o.Said)
		}
	}
	return "not at its end: " + strings.Join(running, "; ")
}

// runAgain runs what failed, one after the other with nothing beside it, until it has passed or failed three times.
func (s Stage) runAgain(ctx context.Context, again []Rerun, logs map[string]string, result *Result) error {
	load := Load()
	for _, rerun := range again {
		for failed := 1; ; failed++ {
			job := Job{
				Name: fmt.Sprintf("%s-again-%d", slug(rerun.Package), failed), Packages: []string{rerun.Package},
				Tests: rerun.Tests, Fresh: true, Timeout: s.timeout(rerun.Package),
			}
			fmt.Fprintf(s.Out, "\n== again, alone: %s\n", rerun.What())
			outcomes, err := s.Run(ctx, job)
			if err != nil {
				return err
			}
			if ctx.Err() != nil {
				return fmt.Errorf("%s was stopped; %s", s.Name, unfinished([][]Outcome{outcomes}))
			}
			verdicts, more := Next(rerun, outcomes[0], failed, s.Strict)
			for _, v := range verdicts {
				result.Verdicts = append(result.Verdicts, Entry{
					Package: v.Package, Test: v.Test, Failed: v.Failed, Attempts: v.Attempts, Forgiven: v.Forgiven,
					Load: load, Log: logs[v.Package],
				})
				if !v.Forgiven {
					result.Refused = append(result.Refused, fmt.Sprintf("%s %s: %s, log %s", Short(v.Package), v.Test, v.Why, s.LogOf(job)))
				}
			}
			if more == nil {
				break
			}
			rerun = *more
		}
	}
	return nil
}

// timeout is that of the package's first run.
func (s Stage) timeout(pkg string) time.Duration {
	for _, job := range s.Jobs {
		if slices.Contains(job.Packages, pkg) {
			return job.Timeout
		}
	}
	return grace
}
