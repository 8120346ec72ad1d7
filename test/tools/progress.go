package tools

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// tick is how often a running build says that it is alive.
const tick = 15 * time.Second

// reporter writes what a build does, in lines for a person who waits.
type reporter struct {
	mu       sync.Mutex
	out      io.Writer
	start    time.Time
	ready    int
	total    int
	running  []*jobState
	finished chan struct{}
	stopped  sync.WaitGroup
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
	if out == nil {
		out = io.Discard
	}
	todo, seconds := 0, 0
	for _, j := range jobs {
		todo += len(j.targets)
		seconds += j.seconds()
	}
	r := &reporter{out: out, start: time.Now(), total: total, ready: total - todo, finished: make(chan struct{})}
	if r.ready > 0 {
		r.say("%d of %d tools are built already, %d to go", r.ready, total, todo)
	}
	r.say("building %d tools from source into %s;", todo, cache)
	r.say("each is compiled with all its dependencies, which may take %d minutes on two cores, once: later runs use the result",
		(seconds+59)/60)
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
	r.mu.Unlock()
	r.say("[%d/%d] %s: building", r.readyNow(), r.total, j)
	return s
}

func (r *reporter) done(s *jobState) {
	r.mu.Lock()
	r.ready += len(s.job.targets)
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
	parts := make([]string, 0, len(r.running))
	for _, s := range r.running {
		parts = append(parts, s.String())
	}
	return fmt.Sprintf("[%d/%d] %s so far; %s", r.ready, r.total, seconds(time.Since(r.start)), strings.Join(parts, "; "))
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

func seconds(d time.Duration) time.Duration { return d.Round(time.Second) }
