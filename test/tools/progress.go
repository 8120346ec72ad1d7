package tools

import (
	"fmt"
	"io"
	"math"
	"runtime"
	"strings"
	"sync"
	"time"
)

// tick is how often a running build says that it is alive.
const tick = 15 * time.Second

// reporter writes what a build does, in lines for a person who waits.
type reporter struct {
	mu      sync.Mutex
	out     io.Writer
	start   time.Time
	ready   int
	total   int
	running []*jobState
	// done and todo are the seconds of the jobs that are ready, and of those that have not begun.
	done, todo int
	finished   chan struct{}
	stopped    sync.WaitGroup
}

// jobState is how far one job has come.
type jobState struct {
	job       job
	start     time.Time
	mu        sync.Mutex
	downloads int
	compiled  int
}

func newReporter(out io.Writer, total int, jobs []job, cache string) *reporter {
	todo, all := 0, 0
	for _, j := range jobs {
		todo += len(j.targets)
		all += j.seconds()
	}
	r := &reporter{out: out, start: time.Now(), total: total, ready: total - todo, todo: all, finished: make(chan struct{})}
	if r.ready > 0 {
		r.say("%d of %d tools are there already, %d to go", r.ready, total, todo)
	}
	r.say("building %d tools from source into %s;", todo, cache)
	r.say("each is compiled with all its dependencies, which may take %s on this machine, once: later runs use the result",
		minutes(timeLeft(0, 0, 0, all, runtime.NumCPU())))
	r.stopped.Go(r.tickUntilStopped)
	return r
}

func (r *reporter) say(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.out, format+"\n", args...)
}

// begin announces a job; the state it returns is shown until done.
func (r *reporter) begin(j job) *jobState {
	s := &jobState{job: j, start: time.Now()}
	r.mu.Lock()
	r.running = append(r.running, s)
	r.todo -= j.seconds()
	r.mu.Unlock()
	r.say("[%d/%d] %s: building", r.readyNow(), r.total, j)
	return s
}

func (r *reporter) end(s *jobState) {
	r.mu.Lock()
	r.ready += len(s.job.targets)
	r.done += s.job.seconds()
	for i, running := range r.running {
		if running == s {
			r.running = append(r.running[:i], r.running[i+1:]...)
			break
		}
	}
	r.mu.Unlock()
	r.say("[%d/%d] %s: ready after %s", r.readyNow(), r.total, s.job, seconds(time.Since(s.start)))
}

func (r *reporter) readyNow() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ready
}

func (r *reporter) stop() {
	close(r.finished)
	r.stopped.Wait()
}

func (r *reporter) tickUntilStopped() {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-r.finished:
			return
		case <-ticker.C:
			r.say("%s", r.summary())
		}
	}
}

func (r *reporter) summary() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	parts, running := make([]string, 0, len(r.running)), 0
	for _, s := range r.running {
		parts = append(parts, s.String())
		running += s.job.seconds()
	}
	elapsed := time.Since(r.start)
	left := minutes(timeLeft(elapsed, r.done, running, r.todo, runtime.NumCPU()))
	return fmt.Sprintf("[%d/%d] %s so far, about %s left; %s", r.ready, r.total, seconds(elapsed), left, strings.Join(parts, "; "))
}

// timeLeft estimates how long the rest takes, of jobs that are ready, running and waiting, in the seconds that they take on two
// cores. What is ready shows how fast this machine is; before, its cores do.
func timeLeft(elapsed time.Duration, ready, running, waiting, cores int) time.Duration {
	pace, rest := 2/float64(cores), float64(waiting)
	if ready > 0 {
		half := float64(running) / 2 // on average
		pace, rest = elapsed.Seconds()/(float64(ready)+half), rest+half
	} else {
		rest = max(rest, rest+float64(running)-elapsed.Seconds()/pace)
	}
	return time.Duration(pace * rest * float64(time.Second))
}

// observe counts what a line of go build -v stands for.
func (s *jobState) observe(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case strings.HasPrefix(line, downloading):
		s.downloads++
	case isPackage(line):
		s.compiled++
	}
}

func (s *jobState) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.compiled > 0:
		return fmt.Sprintf("%s: %d packages compiled", s.job, s.compiled)
	case s.downloads > 0:
		return fmt.Sprintf("%s: %d modules downloaded", s.job, s.downloads)
	default:
		return fmt.Sprintf("%s: at work", s.job)
	}
}

func minutes(d time.Duration) string { return fmt.Sprintf("%d minutes", int(math.Ceil(d.Minutes()))) }

func seconds(d time.Duration) time.Duration { return d.Round(time.Second) }
