package gate

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// stacks are the packages that start real components, or test what does, the longest first; but test/fdb, which computes, begins
// beside test/e2e, whose first half waits. All others only compute.
var stacks = []string{
	"test/e2e", "test/fdb", "test/outage", "test/outage/fdb", "test/operations", "test/drills", "test/deploy", "test/docs",
	"test/bench", "test/production", "test/fleet", "test/env", "test/rebuild", "test/coordination", "test/monitoring",
	"test/browser", "test/fdbsim", "test/tools", "test/tools/plugin", "test/image",
}

// The names of the stages of tests.
const (
	Race   = "race" // what has goroutines, with the race detector: the packages that are asked for
	Unit   = "unit"
	Stacks = "stacks"
)

// Jobs are the runs of a stage for the packages that are asked for: one of each for stacks, else one of all that compute.
func Jobs(stage string, packages []string) []Job {
	isStack := func(pkg string) bool { return slices.Contains(stacks, Short(pkg)) }
	if stage != Stacks {
		return computing(stage, slices.DeleteFunc(slices.Clone(packages), isStack))
	}
	var jobs []Job
	for _, folder := range stacks {
		if pkg := module + "/" + folder; slices.Contains(packages, pkg) {
			jobs = append(jobs, Job{Name: slug(pkg), Packages: []string{pkg}, Fresh: true, Timeout: timeoutOf(folder)})
		}
	}
	return jobs
}

// fresh are packages that always run: they read files, or build programs, of which the cache of `go test` knows nothing.
var fresh = []string{"test/house", "test/histories", "test/gate", "test/fdbtools"}

// computing are the jobs for packages that only compute.
func computing(stage string, packages []string) []Job {
	isFresh := func(pkg string) bool { return stage == Unit && slices.Contains(fresh, Short(pkg)) }
	cached := Job{Name: stage, Timeout: timeoutOf("")}
	always := Job{Name: stage + "-fresh", Fresh: true, Timeout: timeoutOf("")}
	for _, pkg := range packages {
		of := &cached
		if isFresh(pkg) {
			of = &always
		}
		of.Packages = append(of.Packages, pkg)
	}
	return slices.DeleteFunc([]Job{cached, always}, func(job Job) bool { return len(job.Packages) == 0 })
}

// timeoutOf is a limit for what hangs. Beside another stack, on a slow day, test/e2e needed over 20 minutes and test/outage 14.
func timeoutOf(folder string) time.Duration {
	switch {
	case os.Getenv("HOLDFAST_TEST_LONG") != "":
		return 150 * time.Minute
	case folder == "": // what computes
		return 10 * time.Minute
	case folder == "test/e2e":
		return 35 * time.Minute
	}
	return 25 * time.Minute
}

// Repeats are two more runs of each new or changed test of the jobs, with the others of its package. A stack starts anew for
// each, since a test finds its own objects otherwise.
func Repeats(jobs []Job, changed map[string][]string) []Job {
	var repeats []Job
	for _, job := range jobs {
		for _, pkg := range job.Packages {
			tests := changed[Short(pkg)]
			if len(tests) == 0 {
				continue
			}
			repeat := Job{Packages: []string{pkg}, Tests: tests, Fresh: true, Timeout: job.Timeout}
			if len(job.Packages) > 1 {
				repeat.Name, repeat.Count = slug(pkg)+"-new", 2
				repeats = append(repeats, repeat)
				continue
			}
			for run := 2; run <= attempts; run++ {
				repeat.Name = fmt.Sprintf("%s-new-%d", slug(pkg), run)
				repeats = append(repeats, repeat)
			}
		}
	}
	return repeats
}

// slug is a package's name for files.
func slug(pkg string) string {
	return strings.ReplaceAll(strings.TrimPrefix(Short(pkg), "test/"), "/", "-")
}
