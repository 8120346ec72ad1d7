// Package outage disturbs Holdfast at exactly known moments: it kills, pauses, stops and restarts processes of the stack at
// named points of a scenario, and compares what comes of it with an undisturbed run.
//
// The processes under test are of the build with tag outage, whose activities and signals report to a Driver and wait for
// it (see package points). Everything else about them is the product's.
package outage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"time"

	"holdfast.dev/holdfast/k8s/process/failpoint"
	"holdfast.dev/holdfast/test/env"
)

// Moment is a point and which of its occurrences is meant, from 1.
type Moment struct {
	failpoint.Point
	Occurrence int
}

// String returns the moment in words.
func (m Moment) String() string {
	if m.Occurrence == 1 {
		return m.Point.String()
	}
	return fmt.Sprintf("%s (%d)", m.Point, m.Occurrence)
}

// AllRepeated reports whether none of the moments is the first of its point: not in every run is a thing done more than once.
func AllRepeated(moments []Moment) bool {
	return !slices.ContainsFunc(moments, func(m Moment) bool { return m.Occurrence <= 1 })
}

// Action is what is done to the stack while a process stands at a point.
type Action func() error

// Driver receives the points that the processes of one case report, and acts at them.
type Driver struct {
	server *httptest.Server

	mutex   sync.Mutex
	armed   bool
	moments []Moment
	counts  map[failpoint.Point]int
	actions map[Moment][]Action
	done    map[Moment]bool
	err     error
}

// NewDriver listens on loopback until Close is called.
func NewDriver() *Driver {
	d := &Driver{counts: map[failpoint.Point]int{}, actions: map[Moment][]Action{}, done: map[Moment]bool{}}
	d.server = httptest.NewServer(http.HandlerFunc(d.reached))
	return d
}

// Close lets every process go that stands at a point.
func (d *Driver) Close() {
	d.server.CloseClientConnections()
	d.server.Close()
}

// URL is where points are reported.
func (d *Driver) URL() string { return d.server.URL }

// Arm has the driver count points, and act, from now on.
func (d *Driver) Arm() {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.armed = true
}

// At has the action done, once, when a process has come to the moment, after those that it was told before. The process goes
// on when the last action has returned.
func (d *Driver) At(moment Moment, action Action) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.actions[moment] = append(d.actions[moment], action)
}

// Moments returns what has been reported since Arm, in order.
func (d *Driver) Moments() []Moment {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return append([]Moment(nil), d.moments...)
}

// Pending returns the moments that have not come, and the first error of an action.
func (d *Driver) Pending() (waiting []Moment, err error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	for moment := range d.actions {
		if !d.done[moment] {
			waiting = append(waiting, moment)
		}
	}
	return waiting, d.err
}

func (d *Driver) reached(w http.ResponseWriter, r *http.Request) {
	var point failpoint.Point
	if err := json.NewDecoder(r.Body).Decode(&point); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	moment, actions := d.note(point)
	if len(actions) == 0 {
		return
	}
	var err error
	for _, action := range actions {
		err = errors.Join(err, action())
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.done[moment] = true
	if err != nil && d.err == nil {
		d.err = fmt.Errorf("at %s: %w", moment, err)
	}
}

func (d *Driver) note(point failpoint.Point) (Moment, []Action) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if !d.armed {
		return Moment{}, nil
	}
	d.counts[point]++
	moment := Moment{Point: point, Occurrence: d.counts[point]}
	d.moments = append(d.moments, moment)
	return moment, d.actions[moment]
}

// KillAndRestart ends a process with SIGKILL. It is started again behind the caller's back, since a process that stands at a
// point must not wait for it; started gets the result.
func KillAndRestart(ctx context.Context, process *env.Process, started chan<- error) Action {
	return func() error {
		if err := process.Kill(); err != nil {
			return err
		}
		go func() { started <- process.Restart(ctx) }()
		return nil
	}
}

// Await returns what is told of what has been begun, or an error if nothing is within a limit.
func Await(told <-chan error, limit time.Duration, what string) error {
	select {
	case err := <-told:
		return err
	case <-time.After(limit):
		return fmt.Errorf("not within %s: %s", limit, what)
	}
}

// BeginOutage returns an action that begins an outage of a process and lets go; it ends by itself, which over is told.
func BeginOutage(ctx context.Context, process *env.Process, how string, lasting time.Duration, over chan<- error) Action {
	return func() error {
		begun := make(chan struct{})
		go func() {
			ctx := context.WithoutCancel(ctx)
			if how == Paused {
				over <- PauseFor(process, lasting, begun)
				return
			}
			over <- StopFor(ctx, process, lasting, begun)
		}()
		<-begun
		return nil
	}
}

// PauseFor stops a process with SIGSTOP for a time: connections stay open and nobody answers. It closes begun as soon as that
// is so.
func PauseFor(process *env.Process, lasting time.Duration, begun chan<- struct{}) error {
	err := process.Pause()
	close(begun)
	if err != nil {
		return err
	}
	time.Sleep(lasting) // the outage itself
	return process.Resume()
}

// StopFor ends a process and starts it again after a time: meanwhile connections are refused. It closes begun as soon as that
// is so.
func StopFor(ctx context.Context, process *env.Process, lasting time.Duration, begun chan<- struct{}) error {
	err := process.Stop()
	close(begun)
	if err != nil {
		return err
	}
	time.Sleep(lasting) // the outage itself
	return process.Restart(ctx)
}
