package stores

import (
	"sync"
)

// maxTurns is how many at a time may have files of tenants' buckets in memory: a hundred MiB each at worst.
const maxTurns = 3

// turns let few at a time read from the buckets of tenants, and only one of each namespace, so that no tenant can
// fill the process's memory or block all others. The zero value is ready for use.
type turns struct {
	mu    sync.Mutex
	taken map[string]bool
}

// take returns false if a namespace must wait; else giveBack ends its turn.
func (t *turns) take(namespace string) (giveBack func(), ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.taken[namespace] || len(t.taken) >= maxTurns {
		return nil, false
	}
	if t.taken == nil {
		t.taken = map[string]bool{}
	}
	t.taken[namespace] = true
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.taken, namespace)
	}, true
}
