package controllers

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

const (
	// startsAtATime bounds the objects whose workflows have been signalled to start and have not started. Temporal's
	// workers process their tasks in order: starts beyond what they can handle soon would delay the ends of workflows that
	// started earlier.
	startsAtATime = 12
	// startPatience is how long an object counts that does not start: no worker runs, or its status cannot be written.
	startPatience = 15 * time.Second
	// lateLasts is how long, at least, a namespace stays late after its objects that did not start are deleted: deleting them
	// must not give it the turns of others again.
	lateLasts   = time.Minute
	startsCheck = time.Second
)

// starts bounds how many objects of a kind start at a time. The others start later, in turns that go round the namespaces:
// a tenant with thousands of new objects does not delay another with one. Namespaces with objects that have not started in time
// share a limit of their own: objects that never start take no turn from the others. Deletions begin in the same turns. Nothing
// else ever waits. Each watcher has its own state, in memory: two watchers together start at most twice as many.
type starts struct {
	mutex sync.Mutex
	// signalled are the objects that were signalled, and when.
	signalled map[Request]time.Time
	// late are the namespaces with objects that were signalled and did not start in time.
	late map[string]*lateness
	// waiting are the others, by namespace, and turns the namespaces in the order of their turns. forced says of each whether
	// it is to be signalled without judging from the cache.
	waiting map[string][]Request
	turns   []string
	forced  map[Request]bool
	// ready have waited, and have been started by something else.
	ready []Request
	moved chan struct{}
	// others is when an object was last seen to start that was not signalled here.
	others time.Time
}

// lateness records which existing objects of a namespace have not started in time, and when the last one was late.
type lateness struct {
	objects map[Request]bool
	last    time.Time
}

func newStarts() *starts {
	return &starts{
		signalled: map[Request]time.Time{}, late: map[string]*lateness{}, waiting: map[string][]Request{}, forced: map[Request]bool{},
		moved: make(chan struct{}, 1),
	}
}

// admit reports whether an unstarted object may start now. If not, its request is enqueued again when it may.
func (s *starts) admit(request Request) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	key := request.Forced(false)
	if _, already := s.signalled[key]; already {
		return true
	}
	before := func(namespace string) bool { return s.isLate(namespace) == s.isLate(key.Namespace) }
	if s.room(key.Namespace) && !slices.ContainsFunc(s.turns, before) {
		s.signalled[key] = time.Now()
		return true
	}
	if force, waits := s.forced[key]; waits {
		s.forced[key] = force || request.Force
		return false
	}
	if len(s.waiting[key.Namespace]) == 0 {
		s.turns = append(s.turns, key.Namespace)
	}
	s.waiting[key.Namespace] = append(s.waiting[key.Namespace], key)
	s.forced[key] = request.Force
	return false
}

func (s *starts) isLate(namespace string) bool { return s.late[namespace] != nil }

// room reports whether one more object of a namespace may start.
func (s *starts) room(namespace string) bool {
	var taken int
	for request := range s.signalled {
		if s.isLate(request.Namespace) == s.isLate(namespace) {
			taken++
		}
	}
	return taken < startsAtATime
}

// started is called when an object has started. A request for it that waits here is due at once: it may be about its end.
// began: it had not started before.
func (s *starts) started(request Request, began bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if began && !s.isOurs(request.Forced(false)) {
		s.others = time.Now()
	}
	if force, waited := s.stopWaiting(request.Forced(false)); waited {
		s.ready = append(s.ready, request.Forced(force))
		s.move()
	}
	namespace := s.late[request.Namespace]
	if namespace != nil && namespace.objects[request.Forced(false)] && len(namespace.objects) == 1 {
		delete(s.late, request.Namespace) // its worker was not running
	}
	s.leave(request)
}

// waits reports whether an object waits for its turn.
func (s *starts) waits(request Request) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	_, waits := s.forced[request.Forced(false)]
	return waits
}

// isOurs reports whether an unstarted object was signalled here.
func (s *starts) isOurs(key Request) bool {
	_, signalled := s.signalled[key]
	late := s.late[key.Namespace]
	return signalled || (late != nil && late.objects[key])
}

// othersStart reports whether another object has started, within that time, that was not signalled here. It does not matter for
// an object whose turn has come here.
func (s *starts) othersStart(request Request, within time.Duration) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return !s.isOurs(request.Forced(false)) && time.Since(s.others) < within
}

// left is called for an object that is judged now and does not wait here: it has started, or will not.
func (s *starts) left(request Request) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.stopWaiting(request.Forced(false))
	s.leave(request)
}

func (s *starts) stopWaiting(key Request) (force, waited bool) {
	if force, waited = s.forced[key]; !waited {
		return false, false
	}
	delete(s.forced, key)
	others := slices.DeleteFunc(s.waiting[key.Namespace], func(other Request) bool { return other == key })
	s.waiting[key.Namespace] = others
	if len(others) == 0 {
		delete(s.waiting, key.Namespace)
		s.turns = slices.DeleteFunc(s.turns, func(namespace string) bool { return namespace == key.Namespace })
	}
	return force, true
}

func (s *starts) move() {
	select {
	case s.moved <- struct{}{}:
	default:
	}
}

func (s *starts) leave(request Request) {
	key := request.Forced(false)
	if namespace := s.late[key.Namespace]; namespace != nil {
		delete(namespace.objects, key)
	}
	if _, signalled := s.signalled[key]; signalled {
		delete(s.signalled, key)
		s.move()
	}
}

// expire records which objects have not started in time, and forgets namespaces without late objects.
func (s *starts) expire() {
	for request, at := range s.signalled {
		if time.Since(at) < startPatience {
			continue
		}
		delete(s.signalled, request)
		if s.late[request.Namespace] == nil {
			s.late[request.Namespace] = &lateness{objects: map[Request]bool{}}
		}
		namespace := s.late[request.Namespace]
		namespace.objects[request], namespace.last = true, time.Now()
	}
	maps.DeleteFunc(s.late, func(_ string, namespace *lateness) bool {
		return len(namespace.objects) == 0 && time.Since(namespace.last) >= lateLasts
	})
}

// due returns the requests that may start now. A namespace for which there is no room keeps its place.
func (s *starts) due() []Request {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.expire()
	due := s.ready
	s.ready = nil
	for i := 0; i < len(s.turns); {
		namespace := s.turns[i]
		if !s.room(namespace) {
			i++
			continue
		}
		next, others := s.waiting[namespace][0], s.waiting[namespace][1:]
		s.turns = slices.Delete(s.turns, i, i+1)
		if len(others) > 0 {
			s.waiting[namespace], s.turns = others, append(s.turns, namespace)
		} else {
			delete(s.waiting, namespace)
		}
		s.signalled[next] = time.Now()
		due = append(due, next.Forced(s.forced[next]))
		delete(s.forced, next)
	}
	return due
}

// handOver enqueues waiting requests as others start.
func (i *intake) handOver(ctx context.Context) error {
	ticker := time.NewTicker(startsCheck)
	defer ticker.Stop()
	for {
		for _, request := range i.starts.due() {
			i.Enqueue(ctx, request)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-i.starts.moved:
		case <-ticker.C:
		}
	}
}

// mayStart reports whether the workflow of an object may be signalled now: an unstarted one may have to wait.
func (i *intake) mayStart(request Request, unstarted bool) bool {
	if !unstarted {
		i.starts.left(request)
		return true
	}
	return i.starts.admit(request)
}
