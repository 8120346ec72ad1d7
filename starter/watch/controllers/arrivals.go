package controllers

import (
	"sync"
	"time"
)

// arrivals records, for every request that waits in the workqueue, when its event arrived, so that the time to the signal can
// be measured: the workqueue merges requests for the same object, and retries failed ones.
type arrivals struct {
	mutex sync.Mutex
	first map[Request]time.Time
}

// note records when a request arrived, or is to count as arrived. The earliest time counts.
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

// take returns when a request arrived and forgets it. It is now for a request that was not recorded (a resync), or that was
// delayed and is handled early.
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
