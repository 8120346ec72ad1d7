package watch

import (
	"context"
	"sync"
	"time"

	"holdfast.dev/holdfast/k8s/backup"
	"holdfast.dev/holdfast/k8s/restore"
)

const (
	// beginningsAtATime bounds the objects whose workflows have been told to begin and have not begun. Temporal's workers take their
	// tasks in order: what is handed over beyond what they can begin soon stands before the ends of what was begun earlier.
	beginningsAtATime = 16
	// beginningPatience is how long one counts that does not begin: its worker is away, or its status cannot be written.
	beginningPatience = 15 * time.Second
	beginningsCheck   = time.Second
)

// beginnings bounds how many unstarted objects of a kind are handed over at a time. What waits is handed over as others begin, in
// turns that go round the namespaces: a tenant with thousands of new objects does not stand before another with one. Only what
// has not begun ever waits. Each watcher has its own, in memory: two of them hand over at most twice as much.
type beginnings struct {
	mutex sync.Mutex
	// handed are those that were handed over, and when.
	handed map[Request]time.Time
	// waiting are the others, by namespace, and turns the namespaces in the order of their turns. forced says of each that waits
	// whether it is to be signalled without judging from the cache.
	waiting map[string][]Request
	turns   []string
	forced  map[Request]bool
	moved   chan struct{}
}

func newBeginnings() *beginnings {
	return &beginnings{
		handed: map[Request]time.Time{}, waiting: map[string][]Request{}, forced: map[Request]bool{}, moved: make(chan struct{}, 1),
	}
}

// admit reports whether an unstarted object may be handed over now. If not, its request comes again when it may.
func (b *beginnings) admit(request Request) bool {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	key := request.forced(false)
	if _, already := b.handed[key]; already {
		return true
	}
	if len(b.turns) == 0 && len(b.handed) < beginningsAtATime {
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

// begun is to be called when an object is seen that waits for nothing here: it has begun, or will not.
func (b *beginnings) begun(request Request) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if _, handed := b.handed[request.forced(false)]; handed {
		delete(b.handed, request.forced(false))
		select {
		case b.moved <- struct{}{}:
		default:
		}
	}
}

// due takes the requests that may be handed over now.
func (b *beginnings) due() []Request {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	for request, at := range b.handed {
		if time.Since(at) >= beginningPatience {
			delete(b.handed, request)
		}
	}
	var due []Request
	for len(b.turns) > 0 && len(b.handed) < beginningsAtATime {
		namespace := b.turns[0]
		next, others := b.waiting[namespace][0], b.waiting[namespace][1:]
		b.turns = b.turns[1:]
		if len(others) > 0 {
			b.waiting[namespace], b.turns = others, append(b.turns, namespace)
		} else {
			delete(b.waiting, namespace)
		}
		b.handed[next] = time.Now()
		due = append(due, next.forced(b.forced[next]))
		delete(b.forced, next)
	}
	return due
}

// handOver has what waited looked at again as others begin.
func (i *intake) handOver(ctx context.Context) error {
	ticker := time.NewTicker(beginningsCheck)
	defer ticker.Stop()
	for {
		for _, request := range i.beginnings.due() {
			i.enqueue(ctx, request)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-i.beginnings.moved:
		case <-ticker.C:
		}
	}
}

// mayBegin reports whether the workflow of an object is to be told now. Only one that awaits its beginning ever waits.
func (i *intake) mayBegin(request Request, unstarted bool) bool {
	if !unstarted {
		i.beginnings.begun(request)
		return true
	}
	return i.beginnings.admit(request)
}

func unstarted(o *backup.Objects) bool {
	return o.NAB != nil && awaitsCreation(o.NAB.Status.Phase) && !o.DeletionAsked()
}

func unstartedRestore(o *restore.Objects) bool {
	return o.NAR != nil && awaitsCreation(o.NAR.Status.Phase) && o.NAR.DeletionTimestamp.IsZero()
}
