package queue

import (
	"slices"
	"time"

	"holdfast.dev/holdfast/workflows/contract"
)

// endsToSay is how many turns have to end in a second for each object that starts only to say that it waits.
const endsToSay = 6

// Ends returns how many turns of the pool have ended within the last second: the more, the sooner those that wait have theirs.
func (n *News) Ends(pool contract.Pool) int {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.forget(pool)
	return len(n.ends[pool])
}

// Announce reports whether the workflow of one more object may start now only to write that it waits. Such a start costs half of
// what a backup does. So while many turns end, one may for each endsToSay of them, or those that wait would delay those that have
// turns; and only the leading watcher starts them.
func (n *News) Announce(pool contract.Pool) bool {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.forget(pool)
	ends := len(n.ends[pool])
	if !n.leading || ends >= endsToSay && len(n.says[pool]) >= ends/endsToSay {
		return false
	}
	n.says[pool] = append(n.says[pool], time.Now())
	return true
}

func (n *News) forget(pool contract.Pool) {
	old := func(at time.Time) bool { return time.Since(at) > time.Second }
	n.ends[pool], n.says[pool] = slices.DeleteFunc(n.ends[pool], old), slices.DeleteFunc(n.says[pool], old)
}
