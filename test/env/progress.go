package env

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// progress writes lines from several goroutines one after the other.
type progress struct {
	mu  sync.Mutex
	out io.Writer
}

func newProgress(out io.Writer) *progress {
	if out == nil {
		out = io.Discard
	}
	return &progress{out: out}
}

func (p *progress) say(format string, args ...any) {
	_, _ = fmt.Fprintf(p, format+"\n", args...) // progress is best effort
}

func (p *progress) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(b)
}

// baseEnv is the environment of every component: nothing of the user's settings (proxies, Temporal profiles, credentials, a
// kubeconfig) reaches it. A stack lives for minutes and machines have more memory than CPU time: garbage is collected less often,
// which saves kube-apiserver an eighth of its CPU time, unless Options.GoDefaults.
func (e *Env) baseEnv() []string {
	base := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + e.path("home"), "TMPDIR=" + e.path("tmp"), "LANG=C.UTF-8"}
	if e.options.GoDefaults {
		return base
	}
	return append(base, "GOGC=400", "GOMEMLIMIT=2GiB")
}

// ownEnv is that of Holdfast's processes in addition: they have what they have in a cluster.
func ownEnv() []string { return []string{"GOGC=", "GOMEMLIMIT="} }

// sayCPU tells what each kind of component has cost: machines are shared, so only CPU time can be compared between runs.
func (e *Env) sayCPU() {
	var total time.Duration
	used := map[string]time.Duration{}
	for _, p := range e.Components() {
		used[p.command.kind] += p.CPU()
		total += p.CPU()
	}
	if total == 0 {
		return // nothing was started
	}
	var line strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(used)) {
		fmt.Fprintf(&line, ", %s %.1fs", kind, used[kind].Seconds())
	}
	e.progress.say("CPU time of the components: %.1fs%s", total.Seconds(), line.String())
}

// tellPanic tells, so that the gate reads it, of a panic of one of Holdfast's own processes.
func (e *Env) tellPanic(p *Process) {
	if slices.Contains([]string{Worker, FDBWorker, DrillWorker, Watcher}, p.command.kind) {
		TellPanic(os.Stderr, p.Name(), p.LogPath())
	}
}

// TellPanic tells, so that the gate reads it, of a panic in the log of a process of Holdfast that a test has started by itself.
func TellPanic(out io.Writer, name, log string) {
	if line := panicIn(log); line != "" {
		fmt.Fprintf(out, NeverForgiven+"%s has ended: %s\n", name, line)
	}
}

// panicIn returns the line of a log by which Go's runtime ends a process, if it has one.
func panicIn(path string) string {
	log, err := os.Open(path)
	if err != nil {
		return "" // it has not begun
	}
	defer log.Close()
	said := ""
	for lines := bufio.NewReader(log); ; {
		line, err := lines.ReadString('\n')
		switch {
		case strings.HasPrefix(line, "panic: "), strings.HasPrefix(line, "fatal error: "):
			said = strings.TrimSpace(line)
		case strings.HasPrefix(line, "goroutine ") && said != "":
			return said
		case err != nil:
			return ""
		}
	}
}

// indented sets lines off from those of the test: a panic among them is not the test's.
func indented(lines string) string { return strings.ReplaceAll(lines, "\n", "\n  ") }

// DumpLogs writes the last lines of every component's log.
func (e *Env) DumpLogs(out io.Writer, lines int) {
	for _, p := range e.Components() {
		state := "running"
		if !p.Running() {
			state = "not running"
		}
		fmt.Fprintf(out, "--- %s (%s), end of %s\n  %s\n", p.Name(), state, p.LogPath(), indented(p.LogTail(lines)))
	}
}

// TB is the part of testing.TB that ReportFailure uses.
type TB interface {
	Helper()
	Cleanup(func())
	Failed() bool
	Logf(format string, args ...any)
}

// ReportFailure shows the end of every component's log when the test has failed. Call it after the Cleanup that stops the
// stack was registered, so that the logs are read before they are removed.
func (e *Env) ReportFailure(t TB) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			e.DumpLogs(logWriter{t}, 40)
		}
	})
}

type logWriter struct{ t TB }

func (w logWriter) Write(b []byte) (int, error) {
	w.t.Logf("%s", b)
	return len(b), nil
}
