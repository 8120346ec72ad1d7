package due

import (
	"hash/fnv"
	"time"
)

// jitterMost is the longest jitter of a plan that names none.
const jitterMost = 15 * time.Minute

// sampled is how many due times show the shortest time between two.
const sampled = 100

// Period is the shortest time between two due times from a moment on, as clocks show it: a day is a day when they are set, too.
func (s Schedule) Period(from time.Time) time.Duration {
	times := s.civilly().NextN(from, sampled)
	shortest := times[1].Sub(times[0])
	for i, at := range times[1:] {
		shortest = min(shortest, at.Sub(times[i]))
	}
	return shortest
}

// Jitter is how much later than due the runs of a plan begin: always the same of one UID, so that the time between two backups is
// that of the schedule. The most is up to; if that is nil, a tenth of the period, and no more than 15 minutes.
func Jitter(uid string, up *time.Duration, period time.Duration) time.Duration {
	most := min(period/10, jitterMost)
	if up != nil {
		most = *up
	}
	seconds := uint64(most / time.Second)
	if seconds == 0 {
		return 0
	}
	hash := fnv.New64a()
	hash.Write([]byte(uid))
	return time.Duration(hash.Sum64()%(seconds+1)) * time.Second
}
