package watched

import (
	"sync"
	"time"
)

// arrivals remembers, for every request that waits in the workqueue, when its event came, so that the time to the signal can
// be measured: the workqueue keeps one of several requests for the same object, and tries again what failed.
type arrivals struct {
	mutex sync.Mutex
	first map[Request]time.Time
}

// note remembers that a request came, or shall count as come, at a time. The earliest counts.
func (a *arrivals) note(request Request, at time.Time) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.first == nil {
		a.first = map[Request]time.Time{}
	}
	if known, ok := a.first[request]; !ok || at.Before(known) {
		a.first[request] = at
	}
}

// take returns when a request came and forgets it. One that nobody noted (a resync), or that was put off and is looked at
// early, comes now.
func (a *arrivals) take(request Request) time.Time {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	now := time.Now()
	at, ok := a.first[request]
	delete(a.first, request)
	if !ok || at.After(now) {
		return now
	}
	return at
}
