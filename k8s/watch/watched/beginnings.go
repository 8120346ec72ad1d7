package watched

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

const (
	// beginningsAtATime bounds the objects whose workflows have been signalled to start and have not started. Temporal's
	// workers process their tasks in order: starts beyond what they can handle soon would delay the ends of workflows that
	// started earlier.
	beginningsAtATime = 12
	// beginningPatience is how long an object counts that does not start: no worker runs, or its status cannot be written.
	beginningPatience = 15 * time.Second
	// suspicion is how long, at least, a namespace stays late after its objects that did not start are deleted: deleting them
	// must not give it the turns of others again.
	suspicion       = time.Minute
	beginningsCheck = time.Second
)

// beginnings bounds how many objects of a kind start at a time. The others start later, in turns that go round the namespaces:
// a tenant with thousands of new objects does not delay another with one. Namespaces with objects that have not started in time
// share a limit of their own: objects that never start take no turn from the others. Only objects that have not started ever
// wait. Each watcher has its own state, in memory: two watchers together start at most twice as many.
type beginnings struct {
	mutex sync.Mutex
	// handed are the objects that were signalled, and when.
	handed map[Request]time.Time
	// late are the namespaces with objects that were signalled and did not start in time.
	late map[string]*lateness
	// waiting are the others, by namespace, and turns the namespaces in the order of their turns. forced says of each whether
	// it is to be signalled without judging from the cache.
	waiting map[string][]Request
	turns   []string
	forced  map[Request]bool
	moved   chan struct{}
}

// lateness records which existing objects of a namespace have not started in time, and when the last one was late.
type lateness struct {
	objects map[Request]bool
	last    time.Time
}

func newBeginnings() *beginnings {
	return &beginnings{
		handed: map[Request]time.Time{}, late: map[string]*lateness{}, waiting: map[string][]Request{}, forced: map[Request]bool{},
		moved: make(chan struct{}, 1),
	}
}

// admit reports whether an unstarted object may start now. If not, its request is enqueued again when it may.
func (b *beginnings) admit(request Request) bool {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	key := request.Forced(false)
	if _, already := b.handed[key]; already {
		return true
	}
	before := func(namespace string) bool { return b.isLate(namespace) == b.isLate(key.Namespace) }
	if b.room(key.Namespace) && !slices.ContainsFunc(b.turns, before) {
		b.handed[key] = time.Now()
		return true
	}
	if force, waits := b.forced[key]; waits {
		b.forced[key] = force || request.Force
		return false
	}
	if len(b.waiting[key.Namespace]) == 0 {
		b.turns = append(b.turns, key.Namespace)
	}
	b.waiting[key.Namespace] = append(b.waiting[key.Namespace], key)
	b.forced[key] = request.Force
	return false
}

func (b *beginnings) isLate(namespace string) bool { return b.late[namespace] != nil }

// room reports whether one more object of a namespace may start.
func (b *beginnings) room(namespace string) bool {
	var taken int
	for request := range b.handed {
		if b.isLate(request.Namespace) == b.isLate(namespace) {
			taken++
		}
	}
	return taken < beginningsAtATime
}

// begun is called when an object has started.
func (b *beginnings) begun(request Request) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	namespace := b.late[request.Namespace]
	if namespace != nil && namespace.objects[request.Forced(false)] && len(namespace.objects) == 1 {
		delete(b.late, request.Namespace) // its worker was not running
	}
	b.leave(request)
}

// left is called for an object that does not wait here: it has started, or will not.
func (b *beginnings) left(request Request) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.leave(request)
}

func (b *beginnings) leave(request Request) {
	key := request.Forced(false)
	if namespace := b.late[key.Namespace]; namespace != nil {
		delete(namespace.objects, key)
	}
	if _, handed := b.handed[key]; handed {
		delete(b.handed, key)
		select {
		case b.moved <- struct{}{}:
		default:
		}
	}
}

// expire records which objects have not started in time, and forgets namespaces without late objects.
func (b *beginnings) expire() {
	for request, at := range b.handed {
		if time.Since(at) < beginningPatience {
			continue
		}
		delete(b.handed, request)
		if b.late[request.Namespace] == nil {
			b.late[request.Namespace] = &lateness{objects: map[Request]bool{}}
		}
		namespace := b.late[request.Namespace]
		namespace.objects[request], namespace.last = true, time.Now()
	}
	maps.DeleteFunc(b.late, func(_ string, namespace *lateness) bool {
		return len(namespace.objects) == 0 && time.Since(namespace.last) >= suspicion
	})
}

// due returns the requests that may start now. A namespace for which there is no room keeps its place.
func (b *beginnings) due() []Request {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.expire()
	var due []Request
	for i := 0; i < len(b.turns); {
		namespace := b.turns[i]
		if !b.room(namespace) {
			i++
			continue
		}
		next, others := b.waiting[namespace][0], b.waiting[namespace][1:]
		b.turns = slices.Delete(b.turns, i, i+1)
		if len(others) > 0 {
			b.waiting[namespace], b.turns = others, append(b.turns, namespace)
		} else {
			delete(b.waiting, namespace)
		}
		b.handed[next] = time.Now()
		due = append(due, next.Forced(b.forced[next]))
		delete(b.forced, next)
	}
	return due
}

// handOver enqueues waiting requests as others start.
func (i *intake) handOver(ctx context.Context) error {
	ticker := time.NewTicker(beginningsCheck)
	defer ticker.Stop()
	for {
		for _, request := range i.beginnings.due() {
			i.Enqueue(ctx, request)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-i.beginnings.moved:
		case <-ticker.C:
		}
	}
}

// mayBegin reports whether the workflow of an object may be signalled now. Only an unstarted object ever waits.
func (i *intake) mayBegin(request Request, unstarted bool) bool {
	if !unstarted {
		i.beginnings.left(request)
		return true
	}
	return i.beginnings.admit(request)
}
