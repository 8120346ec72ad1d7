package gate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"holdfast.dev/holdfast/test/tools"
)

// ErrRefused says that a change must not land; the reasons have been printed.
var ErrRefused = errors.New("refused")

// keptRuns is how many folders of logs stay on the machine.
const keptRuns = 90

// Options say what Main runs.
type Options struct {
	Stage     string // Race, Unit or Stacks
	Forgive   bool
	Prove     bool // leave out what is proved
	Lanes     int
	Gotestsum string
	Flags     []string // of go test
	Packages  []string // patterns, of both modules
	Out       io.Writer
}

// Main runs a stage of tests, prints what it came to, and adds it to the ledger. It returns ErrRefused if it is not to land.
func Main(ctx context.Context, options Options) error {
	root, folder, err := places()
	if err != nil {
		return err
	}
	plan, err := prepare(ctx, options, root, folder)
	if err != nil || len(plan.Jobs) == 0 {
		return err
	}
	run := plan.run
	measured := Watch(ctx)
	result, err := plan.Go(ctx)
	if err != nil {
		return err
	}
	result.Proved = plan.proved
	run.Load, run.Pressure = measured()
	run.Seconds, run.Failed, run.Refused = result.Seconds, result.Verdicts, len(result.Refused) > 0
	ledger := OpenLedger(folder)
	if !options.chosen() { // else it says nothing about a package
		if err := ledger.Add(run); err != nil {
			return err
		}
	}
	if runs, err := ledger.Runs(); err == nil {
		Last(options.Out, runs, 20)
	}
	Report(options.Out, options.Stage, result)
	if err := appendTo(os.Getenv("HOLDFAST_FLAKES"), Noted(result)); err != nil {
		return err
	}
	if run.Refused {
		return ErrRefused
	}
	return nil
}

// plan is a stage with what is known of it.
type plan struct {
	Stage

	run     Run
	proving *proving
	proved  []string
}

// prepare finds out what is to run. A plan without jobs is to be left.
func prepare(ctx context.Context, options Options, root, folder string) (plan, error) {
	module := filepath.Join(root, "test")
	packages, err := goCommand(ctx, module, append([]string{"list"}, options.Packages...)...)
	if err != nil {
		return plan{}, err
	}
	if strings.TrimSpace(packages) == "" {
		return plan{}, fmt.Errorf("no package is named %s", strings.Join(options.Packages, " "))
	}
	jobs := Jobs(options.Stage, strings.Fields(packages))
	if len(jobs) == 0 {
		fmt.Fprintf(options.Out, "== %s: none of the packages belongs to it\n", options.Stage)
		return plan{}, nil
	}
	flakes, err := readFlakes(root, time.Now())
	if err != nil {
		return plan{}, err
	}
	runs, err := OpenLedger(folder).Runs()
	if err != nil {
		return plan{}, err
	}
	landed := Landed(ctx, root, runs)
	changed, err := Changed(ctx, root, landed)
	if err != nil {
		return plan{}, err
	}
	logs, err := newRunFolder(folder, options.Stage)
	if err != nil {
		return plan{}, err
	}
	head, _ := git(ctx, root, "rev-parse", "HEAD") // without git a run has no commit
	p := plan{run: Run{Time: time.Now().UTC(), Commit: strings.TrimSpace(head), Stage: options.Stage}}
	if ChangedSince(ctx, root, landed, rolledOut...) {
		if err := os.Setenv("HOLDFAST_TEST_ROLLOUTS", "1"); err != nil {
			return plan{}, err
		}
	}
	// Somebody who names a test runs just that; tests are repeated where they run without the race detector, too.
	repeated := changed
	if options.Stage == Race || options.chosen() {
		repeated = nil
	}
	if options.Stage == Stacks && options.Prove && !options.chosen() {
		p.proving, err = newProving(ctx, root, filepath.Join(folder, "proofs"), p.run.Commit, options.Flags, jobs, repeated)
		if err != nil {
			return plan{}, err
		}
		jobs, p.proved = p.proving.leaveOut(jobs, time.Now())
	}
	goTest := GoTest{Gotestsum: options.Gotestsum, Dir: module, Flags: options.Flags, Logs: logs, Out: options.Out}
	p.Stage = Stage{
		Name: options.Stage, Jobs: jobs, Lanes: options.lanes(), Forgive: options.Forgive,
		Strict: Strictness(changed, flakes, inStage(runs, options.Stage), time.Now()),
		Run:    goTest.Run, LogOf: goTest.LogOf, Out: options.Out,
		Passed: p.proving.record,
	}
	p.Repeats = Repeats(jobs, repeated)
	p.say(landed, logs)
	return p, nil
}

// rolledOut is what a rollout depends on: without a change in it, `make test` has none.
var rolledOut = []string{"workflows", "test/histories/baseline", ":(exclude)*_test.go", ":(exclude)workflows/*test/*"}

// chosen: somebody has named tests, or how often they run.
func (o Options) chosen() bool {
	return slices.ContainsFunc(o.Flags, func(flag string) bool {
		name, value, _ := strings.Cut(strings.TrimLeft(flag, "-"), "=")
		return slices.Contains([]string{"run", "skip", "list"}, name) || (name == "count" && value != "1")
	})
}

// lanes: what computes has the machine for itself.
func (o Options) lanes() int {
	if o.Stage != Stacks {
		return 1
	}
	return o.Lanes
}

func (p plan) say(landed, logs string) {
	fmt.Fprintf(p.Out, "== %s: %d jobs, %d at a time; logs in %s\n", p.Name, len(p.Jobs)+len(p.Repeats), p.Lanes, logs)
	for _, line := range p.proved {
		fmt.Fprintln(p.Out, line)
	}
	if landed == "" {
		fmt.Fprintln(p.Out, "What has landed is not known here: no test counts as new.")
	}
	for i, job := range p.Repeats {
		if i == 0 {
			fmt.Fprintf(p.Out, "New or changed since %.9s, and so run three times:\n", landed)
		}
		fmt.Fprintf(p.Out, "  %s: %s\n", Short(job.Packages[0]), strings.Join(job.Tests, " "))
	}
}

// goCommand returns what a command of go prints, run in a folder.
func goCommand(ctx context.Context, dir string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = dir
	var said bytes.Buffer
	command.Stderr = &said
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w: %s", args[0], err, said.String())
	}
	return string(output), nil
}

// places returns the checkout, and the folder of the ledger.
func places() (root, ledger string, err error) {
	if root, err = tools.Root(); err != nil {
		return "", "", err
	}
	ledger, err = folder()
	return root, ledger, err
}

// folder is where the ledger and the logs are, the same for all checkouts on a machine.
func folder() (string, error) {
	cache, err := tools.CacheDir()
	return filepath.Join(cache, "gate"), err
}

// newRunFolder makes the folder for the logs of a run, and removes the oldest.
func newRunFolder(folder, stage string) (string, error) {
	runs := filepath.Join(folder, "runs")
	if entries, err := os.ReadDir(runs); err == nil {
		for _, entry := range entries[:max(0, len(entries)-keptRuns)] { // their names begin with the time
			_ = os.RemoveAll(filepath.Join(runs, entry.Name())) // the next run tries again
		}
	}
	path := filepath.Join(runs, fmt.Sprintf("%s-%s-%d", time.Now().UTC().Format("20060102-150405"), stage, os.Getpid()))
	if err := os.MkdirAll(path, 0o755); err != nil {
		return "", fmt.Errorf("make a folder for logs: %w", err)
	}
	return path, nil
}

func readFlakes(root string, now time.Time) ([]Flake, error) {
	const name = "test/flakes.txt"
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		return nil, err
	}
	flakes, err := ReadFlakes(string(text), now)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return flakes, nil
}

// Check reads test/flakes.txt.
func Check() error {
	root, err := tools.Root()
	if err != nil {
		return err
	}
	_, err = readFlakes(root, time.Now())
	return err
}

// PrintRates prints how often each test has failed on this machine.
func PrintRates(out io.Writer) error {
	folder, err := folder()
	if err != nil {
		return err
	}
	runs, err := OpenLedger(folder).Runs()
	if err != nil {
		return err
	}
	Rates(out, runs)
	return nil
}
