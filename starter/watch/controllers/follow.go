package controllers

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// headStart is how long a watcher that follows leaves an event to the leader. What the leader has had served by then needs no
// second signal, which would cost a workflow task and readings of the object. All watchers signal what it has not.
const headStart = 5 * time.Second

func (e *Env) follows() bool { return e.Follows != nil && e.Follows() }

// late reports whether a request is left to the leader at first. One that is signalled whatever the cache holds is not: a second
// signal costs least right after the first.
func (k *Kind[T]) late(request Request, arrived arrival) bool {
	return arrived.event && !request.Force && k.Judge != nil && k.follows()
}

// headStart returns for how long a request is still the leader's alone.
func (k *Kind[T]) headStart(request Request, arrived arrival) time.Duration {
	if !k.late(request, arrived) {
		return 0
	}
	return headStart - time.Since(arrived.at)
}

// latencySince is when the time to the signal of a request begins: a head start does not count.
func (k *Kind[T]) latencySince(request Request, arrived arrival) time.Time {
	if ends, now := arrived.at.Add(headStart), time.Now(); k.late(request, arrived) && ends.Before(now) {
		return ends
	}
	return arrived.at
}

// leave returns when a watcher that follows judges an object again that it leaves to the leader, and zero if it does not. It
// leaves an event of an object whose workflow waits, and the start of one as long as others start that this watcher has not
// signalled. After a resync interval it leaves an object no longer: the leader may not reach Temporal.
func (k *Kind[T]) leave(request Request, view View, event bool) time.Duration {
	var again time.Duration
	switch {
	case request.Force:
	case view.Due && view.Waits && event:
		again = k.next(view)
	case view.Unstarted && k.starts.othersStart(request, headStart):
		again = headStart
	}
	// A watcher that leads from now on has Lead called. What is added after that is not left.
	if again > 0 && k.follows() && k.left.add(request, k.ResyncInterval) && k.follows() {
		return again
	}
	k.left.remove(request)
	return 0
}

// Lead implements Watcher.
func (k *Kind[T]) Lead(ctx context.Context) {
	for _, request := range k.left.all() {
		k.Enqueue(ctx, request)
	}
}

// left records what a watcher that follows leaves to the leader, and since when. Each such request is in the workqueue, too, and
// goes from here when it is judged: there are never more than objects that have something to do.
type left struct {
	mutex sync.Mutex
	since map[Request]time.Time
}

// add reports whether a request may be left, which it may for a limited time.
func (l *left) add(request Request, limit time.Duration) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if since, known := l.since[request]; known {
		return time.Since(since) < limit
	}
	if l.since == nil {
		l.since = map[Request]time.Time{}
	}
	l.since[request] = time.Now()
	return true
}

func (l *left) remove(request Request) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	delete(l.since, request)
}

// all returns the requests and forgets them.
func (l *left) all() []Request {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	all := slices.Collect(maps.Keys(l.since))
	l.since = nil
	return all
}
