package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
)

// parallelBuilds is how many modules are compiled at once. Go itself uses all cores; two at once fill the gaps of
// linking and downloading.
const parallelBuilds = 2

// Path returns the path of one program's binary, building it when it is missing. The progress of a build goes to
// standard error, because standard output may be what a caller captures.
func Path(ctx context.Context, name string) (string, error) {
	if slices.Contains(groups, name) {
		return "", fmt.Errorf("%q is a group of tools, not one tool", name)
	}
	paths, err := Build(ctx, []string{name}, os.Stderr)
	if err != nil {
		return "", err
	}
	return paths[name], nil
}

// Build returns the path of each program named (or member of a group named; all when names is empty), by the program's
// name. It builds those that the cache lacks and writes what it does to progress, which may be nil. When ctx ends it stops the
// compilers that it started before it returns.
func Build(ctx context.Context, names []string, progress io.Writer) (map[string]string, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	b := builder{catalog: catalog, toolsDir: filepath.Join(root, "test", "tools"), cache: cache}
	return b.build(ctx, names, progress)
}

// builder is Build with its surroundings, which tests replace.
type builder struct {
	catalog  []tool
	toolsDir string
	cache    string
}

// job is what one go command builds: all missing programs of one module, so that their shared packages compile once.
type job struct {
	module  string
	targets []target
}

func (j job) seconds() int {
	total := 0
	for _, t := range j.targets {
		total += t.seconds
	}
	return total
}

func (j job) String() string {
	names := make([]string, 0, len(j.targets))
	for _, t := range j.targets {
		names = append(names, t.name)
	}
	return strings.Join(names, ", ") + " " + j.targets[0].version
}

func (b builder) build(ctx context.Context, names []string, progress io.Writer) (map[string]string, error) {
	selected, err := selectTools(b.catalog, names)
	if err != nil {
		return nil, err
	}
	targets, err := b.targets(ctx, selected)
	if err != nil {
		return nil, err
	}
	if progress == nil {
		progress = io.Discard
	}
	atHand(ctx, targets, progress)
	paths := make(map[string]string, len(targets))
	for _, t := range targets {
		paths[t.name] = t.path
	}
	jobs := missing(targets)
	if len(jobs) == 0 {
		return paths, nil
	}

	report := newReporter(progress, len(targets), jobs, b.cache)
	defer report.stop()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelBuilds)
	for _, j := range jobs {
		group.Go(func() error { return b.run(ctx, j, report) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return paths, nil
}

func (b builder) targets(ctx context.Context, selected []tool) ([]target, error) {
	env, err := readGoEnv(ctx, b.toolsDir)
	if err != nil {
		return nil, err
	}
	targets := make([]target, 0, len(selected))
	for _, t := range selected {
		target, err := newTarget(ctx, t, b.toolsDir, b.cache, env)
		if err != nil {
			return nil, err
		}
		targets = append(targets, target)
	}
	return targets, nil
}

// missing groups the targets that must be built by module, the longest build first.
func missing(targets []target) []job {
	var jobs []job
	for _, t := range targets {
		if t.exists() {
			continue
		}
		i := slices.IndexFunc(jobs, func(j job) bool { return j.module == t.module })
		if i < 0 {
			jobs = append(jobs, job{module: t.module})
			i = len(jobs) - 1
		}
		jobs[i].targets = append(jobs[i].targets, t)
	}
	slices.SortStableFunc(jobs, func(a, b job) int { return b.seconds() - a.seconds() })
	return jobs
}

// run builds one job under the module's lock, unless another process has done so while we waited for it.
func (b builder) run(ctx context.Context, j job, report *reporter) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	state := report.begin(j)
	lock := filepath.Join(b.cache, "tools", j.module+".lock")
	unlock, err := LockFile(ctx, lock, func() { report.say("%s: another process is building it, waiting", j) })
	if err != nil {
		return err
	}
	defer unlock()
	j.targets = slices.DeleteFunc(slices.Clone(j.targets), target.exists)
	if len(j.targets) > 0 {
		if err := b.compile(ctx, j, state); err != nil {
			return err
		}
	}
	report.end(state)
	return nil
}

// compile builds under the module's lock: nobody else uses its temporary folder.
func (b builder) compile(ctx context.Context, j job, state *jobState) error {
	tmp := filepath.Join(b.cache, "tools", ".building-"+j.module)
	if err := errors.Join(os.RemoveAll(tmp), os.Mkdir(tmp, 0o755)); err != nil { // one may be left from a run that was killed
		return fmt.Errorf("build %s: %w", j, err)
	}
	defer os.RemoveAll(tmp)
	args := []string{"build", "-v", "-trimpath", "-ldflags", j.targets[0].linker, "-o", tmp + string(filepath.Separator)}
	if tags := j.targets[0].tags; tags != "" {
		args = append(args, "-tags", tags)
	}
	for _, t := range j.targets {
		args = append(args, t.pkg)
	}
	command := goCommand{dir: filepath.Join(b.toolsDir, j.module), args: args, env: buildEnv()}
	if err := runGo(ctx, command, state.observe); err != nil {
		return fmt.Errorf("build %s: %w", j, err)
	}
	for _, t := range j.targets {
		if err := t.install(filepath.Join(tmp, binaryName(t.pkg))); err != nil {
			return err
		}
	}
	return nil
}
