package velero

import (
	"context"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/starter/watch/controllers"
	"holdfast.dev/holdfast/workflows/contract"
)

// recordedTurns records what concerns the queue before Velero.
type recordedTurns struct {
	// Limits are the pools in which objects need turns.
	Limits map[contract.Pool]bool
	// EndedLately is how many turns have ended within the last second, and Busy says that none may start only to say that it waits.
	EndedLately int
	Busy        bool
	// Noted is what watchers have noted: "request", "waits" or "not needed" and the object.
	Noted []string
	mutex sync.Mutex
}

func (t *recordedTurns) Limited(pool contract.Pool) bool { return t.Limits[pool] }

func (t *recordedTurns) Ends(contract.Pool) int { return t.EndedLately }

func (t *recordedTurns) Announce(contract.Pool) bool { return !t.Busy }

func (t *recordedTurns) BeganToWait(_ context.Context, pool contract.Pool, object client.Object) {
	t.note("waits", pool, object)
}

func (t *recordedTurns) Request(_ context.Context, pool contract.Pool, object client.Object) {
	t.note("request", pool, object)
}

func (t *recordedTurns) NotNeeded(pool contract.Pool, object client.Object) {
	t.note("not needed", pool, object)
}

func (t *recordedTurns) Gone(pool contract.Pool, object client.Object) { t.note("gone", pool, object) }

func (t *recordedTurns) note(what string, pool contract.Pool, object client.Object) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.Noted = append(t.Noted, what+" "+string(pool)+" "+client.ObjectKeyFromObject(object).String())
}

// forced are the requests for objects of the tenant, to be signalled without judging from the cache.
func forced(names ...string) []controllers.Request {
	var requests []controllers.Request
	for _, name := range names {
		requests = append(requests, request(name).Forced(true))
	}
	return requests
}
