package controllers

import (
	"sync"
	"time"
)

// arrivals records, for every request that waits in the workqueue, when it arrived, so that the time to the signal can be
// measured: the workqueue merges requests for the same object, and retries failed ones.
type arrivals struct {
	mutex sync.Mutex
	first map[Request]arrival
}

// arrival is when a request arrived, or is to count as arrived.
type arrival struct {
	at time.Time
	// event: an event has caused it, which another watcher has too. Others are this watcher's own.
	event bool
}

// note records an arrival. The earliest time counts, and that one is this watcher's own.
func (a *arrivals) note(request Request, of arrival) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.first == nil {
		a.first = map[Request]arrival{}
	}
	if known, ok := a.first[request]; ok {
		of.event = of.event && known.event
		if known.at.Before(of.at) {
			of.at = known.at
		}
	}
	a.first[request] = of
}

// take returns the arrival of a request and forgets it. It is now for a request that was not recorded (a resync), or that was
// delayed and is handled early.
func (a *arrivals) take(request Request) arrival {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	now := time.Now()
	of, ok := a.first[request]
	delete(a.first, request)
	if !ok || of.at.After(now) {
		of.at = now
	}
	return of
}

// wait reports whether a request waits for its signal since its arrival.
func (a *arrivals) wait(request Request) bool {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	_, waits := a.first[request]
	return waits
}
