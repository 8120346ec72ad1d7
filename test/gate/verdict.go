package gate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// maxFailed is how many tests of a package may fail for what failed alone to run again.
const maxFailed = 10

// attempts is how often a test runs that fails each time.
const attempts = 3

// Strict says for which tests there is no forgiveness: why, or nothing.
type Strict func(pkg, test string) string

// Rerun is what of a package runs again, alone on the machine.
type Rerun struct {
	Package string
	Tests   []string // the whole package if empty
}

// What names it for people.
func (r Rerun) What() string {
	if len(r.Tests) == 0 {
		return r.Package + ", whole"
	}
	return fmt.Sprintf("%s: %s", r.Package, strings.Join(r.Tests, ", "))
}

// Decide says what the first run of all packages means: what refuses the change at once, and what runs again.
func Decide(first []Outcome, strict Strict) (refused []string, again []Rerun) {
	crowds := 0
	for _, o := range first {
		switch o.Cause {
		case "":
		case Timeout, NoTest, Tests:
			if reasons := unforgiven(o, strict); len(reasons) > 0 {
				refused = append(refused, reasons...)
				continue
			}
			rerun := Rerun{Package: o.Package}
			switch {
			case o.Cause != Tests:
			case len(o.Failed) > maxFailed:
				crowds++
			default:
				rerun.Tests = o.Failed
			}
			again = append(again, rerun)
		default: // the others are the change's fault, however slow the moment was
			refused = append(refused, fmt.Sprintf("%s: %s: %s", o.Package, o.Cause, o.Said))
		}
	}
	if crowds > 1 {
		refused = append(refused, fmt.Sprintf("more than %d tests failed in each of %d packages", maxFailed, crowds))
	}
	return refused, again
}

// Verdict is what became of a test that failed, or of a package.
type Verdict struct {
	Package, Test    string // no test: the whole package
	Failed, Attempts int
	Forgiven         bool
	Why              string // of a refusal
}

// Next says what another run of what had failed means for each of its tests: it is forgiven, refused, or runs again. failed
// counts the runs in which it failed before.
func Next(r Rerun, o Outcome, failed int, strict Strict) (verdicts []Verdict, again *Rerun) {
	if len(r.Tests) == 0 {
		verdict := Verdict{Package: r.Package, Failed: failed, Attempts: failed + 1, Forgiven: o.Passed()}
		if !o.Passed() {
			verdict.Failed++
			verdict.Why = fmt.Sprintf("again: %s %s", o.Cause, cmp.Or(o.Said, strings.Join(o.Failed, ", ")))
		}
		return []Verdict{verdict}, nil
	}
	for _, test := range r.Tests {
		verdict := Verdict{Package: r.Package, Test: test, Failed: failed, Attempts: failed + 1}
		name := Unnumbered(test)
		same := func(other string) bool { return Unnumbered(other) == name }
		touched := func(other string) bool {
			return same(other) || strings.HasPrefix(Unnumbered(other), name+"/") || strings.HasPrefix(name, Unnumbered(other)+"/")
		}
		why := strict(r.Package, test)
		switch {
		case !o.Passed() && o.Cause != Tests:
			verdict.Why = fmt.Sprintf("%s: %s", o.Cause, o.Said)
		case slices.ContainsFunc(o.Failed, touched):
			verdict.Failed++
			if verdict.Failed < attempts && why == "" {
				if again == nil {
					again = &Rerun{Package: r.Package}
				}
				again.Tests = append(again.Tests, test)
				continue
			}
			verdict.Why = cmp.Or(why, fmt.Sprintf("failed %d times", verdict.Failed))
		case slices.ContainsFunc(o.Good, same):
			verdict.Forgiven = true
		default:
			verdict.Why = "it did not run a second time"
		}
		verdicts = append(verdicts, verdict)
	}
	return verdicts, again
}

// unforgiven are the reasons for which failures of a package's tests, or of the package as a whole, are final.
func unforgiven(o Outcome, strict Strict) (reasons []string) {
	failures := slices.Concat(o.Failed, o.Running)
	if o.Cause != Tests || len(o.Failed) > maxFailed {
		failures = append(failures, "") // the package
	}
	for _, test := range failures {
		if why := strict(o.Package, test); why != "" {
			reasons = append(reasons, fmt.Sprintf("%s: %s failed: %s", o.Package, test, why))
		}
	}
	return reasons
}

// Function is the test function of a test or of its subtest.
func Function(test string) string {
	function, _, _ := strings.Cut(test, "/")
	return function
}
