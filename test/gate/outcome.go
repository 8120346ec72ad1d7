package gate

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Cause says why a package failed.
type Cause string

// The causes, those first that no second run forgives.
const (
	Build         Cause = "it does not build"
	DataRace      Cause = "data race"
	Panic         Cause = "panic"
	NeverForgiven Cause = "never forgiven" // the output has a line that begins with Unforgivable
	Timeout       Cause = "timeout"
	NoTest        Cause = "it failed without a failed test"
	Tests         Cause = "failed tests"
)

// WholeAgain begins the line that a stack prints when a look at all of its tests could not be taken: to run those that failed
// is not enough then.
const WholeAgain = "the whole package again: "

// Unforgivable begins the line that a stack prints when it has found a secret, or a request that a missing right refused.
const Unforgivable = "never forgiven: "

// Outcome is what one run of a package came to.
type Outcome struct {
	Package string
	Cause   Cause    // empty if it passed
	Failed  []string // tests that failed by themselves, not since a subtest did
	Running []string // tests that have no end, although the package has
	Good    []string // tests and subtests that passed
	Ran     int      // test functions that ended
	Skipped int      // of these
	Said    string   // the line of the output that shows the cause
	Warned  []string // the lines by which test/house warns
	Seconds float64
	Cached  bool // it passed in an earlier run
}

// Passed tells whether all tests of the package did.
func (o Outcome) Passed() bool { return o.Cause == "" }

// event is a line of `go test -json`.
type event struct {
	Action, Package, Test, Output, ImportPath, FailedBuild string

	Elapsed float64
}

// Outcomes reads what `go test -json` printed. A package without an end (its run was killed) failed without a failed test.
func Outcomes(events io.Reader) ([]Outcome, error) {
	read := map[string]*reading{}
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) == nil && e.Package != "" {
				if read[e.Package] == nil {
					read[e.Package] = &reading{failed: map[string]bool{}, running: map[string]bool{}, blamed: map[string]bool{}}
				}
				read[e.Package].add(e)
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read the events of go test: %w", err)
		}
	}
	var outcomes []Outcome
	for _, name := range slices.Sorted(maps.Keys(read)) {
		outcomes = append(outcomes, read[name].outcome(name))
	}
	return outcomes, nil
}

// reading is what the events of a package have said so far.
type reading struct {
	ended, passed        bool
	build                string
	causes               map[Cause]string
	panicked             string // a line that may be a panic's: a stack trace must follow
	failed, running      map[string]bool
	blamed               map[string]bool // tests that have said something themselves: it may be what has failed
	cached               bool
	whole                string
	good, warned         []string
	ran, skipped         int
	seconds              float64
	stillRunningFromHere bool
}

func (r *reading) add(e event) {
	topLevel := e.Test != "" && !strings.Contains(e.Test, "/")
	switch e.Action {
	case "run", "cont":
		r.running[e.Test] = true
	case "pause": // it waits for its turn
		delete(r.running, e.Test)
	case "output":
		r.output(strings.TrimRight(e.Output, "\n"))
		r.blamed[e.Test] = r.blamed[e.Test] || ofTest.MatchString(e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			r.ended, r.passed, r.build, r.seconds = true, e.Action != "fail", e.FailedBuild, e.Elapsed
			return
		}
		delete(r.running, e.Test)
		switch e.Action {
		case "fail":
			r.failed[e.Test] = true
		case "pass":
			r.good = append(r.good, e.Test)
		}
		if topLevel {
			r.ran++
		}
		if topLevel && e.Action == "skip" {
			r.skipped++
		}
	}
}

var (
	stillRunning = regexp.MustCompile(`^\t+(Test\S+) \(`)
	// ofTest is the begin of what a test says, be it by Log or by Fatal: the output does not tell which.
	ofTest    = regexp.MustCompile(`^\s+\S+\.go:\d+: `)
	panics    = regexp.MustCompile(`(panic|fatal error): `)
	goroutine = regexp.MustCompile(`^goroutine \d+ .*\[`)
)

func (r *reading) output(line string) {
	if _, warning, found := strings.Cut(line, ": warning: "); found {
		r.warned = append(r.warned, warning)
	}
	if strings.HasPrefix(line, WholeAgain) && r.whole == "" {
		r.whole = line
	}
	cause := Cause("")
	switch {
	case strings.HasPrefix(line, "FAIL") && (strings.HasSuffix(line, "[build failed]") || strings.HasSuffix(line, "[setup failed]")):
		cause = Build
	case strings.HasPrefix(line, "WARNING: DATA RACE"):
		cause = DataRace
	case strings.HasPrefix(line, Unforgivable):
		cause = NeverForgiven
	case strings.HasPrefix(line, "panic: test timed out after "):
		cause, r.stillRunningFromHere = Timeout, true
	case goroutine.MatchString(line) && r.panicked != "":
		r.say(Panic, r.panicked)
	case panics.MatchString(line): // what was printed before it may lack its end
		r.panicked = line
	case strings.HasPrefix(line, "ok") && strings.HasSuffix(line, "(cached)"):
		r.cached = true
	}
	if match := stillRunning.FindStringSubmatch(line); match != nil && r.stillRunningFromHere {
		r.causes[Timeout] += " " + match[1]
	}
	if cause != "" {
		r.say(cause, line)
	}
}

// say keeps the first line that shows a cause.
func (r *reading) say(cause Cause, line string) {
	if r.causes == nil {
		r.causes = map[Cause]string{}
	}
	if r.causes[cause] == "" {
		r.causes[cause] = line
	}
}

func (r *reading) outcome(name string) Outcome {
	o := Outcome{
		Package: name, Good: r.good, Warned: r.warned, Ran: r.ran, Skipped: r.skipped, Seconds: r.seconds, Cached: r.cached,
	}
	if r.ended && r.passed && r.causes[NeverForgiven] == "" { // a stack that stops says what it found when all tests have passed
		return o
	}
	if r.build != "" {
		r.say(Build, r.build)
	}
	o.Failed, o.Running = r.leaves(), slices.Sorted(maps.Keys(r.running))
	for _, cause := range []Cause{Build, DataRace, NeverForgiven, Timeout, Panic} {
		if said := r.causes[cause]; said != "" {
			o.Cause, o.Said = cause, said
			return o
		}
	}
	switch {
	case !r.ended:
		o.Cause, o.Said = NoTest, "it was ended while these ran: "+strings.Join(o.Running, " ")
	case len(o.Running) > 0:
		o.Cause, o.Said = NoTest, "its process ended while these ran: "+strings.Join(o.Running, " ")
	case r.whole != "", len(o.Failed) == 0:
		o.Cause, o.Said = NoTest, r.whole
	default:
		o.Cause = Tests
	}
	return o
}

// leaves are the failed tests without those that failed since a subtest did. A test that has said something itself runs again
// whole: its subtests do not show what it may have found.
func (r *reading) leaves() []string {
	var leaves []string
	for _, test := range slices.Sorted(maps.Keys(r.failed)) { // a test comes before its subtests
		below := func(other string) bool { return strings.HasPrefix(other, test+"/") }
		within := func(leaf string) bool { return strings.HasPrefix(test, leaf+"/") }
		if slices.ContainsFunc(leaves, within) {
			continue
		}
		if r.blamed[test] || !slices.ContainsFunc(slices.Collect(maps.Keys(r.failed)), below) {
			leaves = append(leaves, test)
		}
	}
	return leaves
}
