package simulate

import (
	"math"
	"math/rand/v2"
)

// System is what is simulated. Times are in seconds.
type System struct {
	Stations []Station
	// Groups are sets of jobs that arrive on their own, and pay their own visits.
	Groups []Group
	// Until is when the simulation ends, whatever is unfinished.
	Until float64
}

// Station serves as many jobs at a time as it has servers, first come, first served; urgent ones before the others.
type Station struct {
	Name    string
	Servers int
}

// Group is a set of jobs.
type Group struct {
	Arrivals []Arrivals
	Visits   []Visit
}

// Arrivals are jobs at random times from Begin until End, uniformly.
type Arrivals struct {
	Begin, End float64
	Jobs       int
}

// Visit is one service that a job needs.
type Visit struct {
	Station int
	// Seconds of one server: always the same if Fixed, else distributed exponentially around them.
	Seconds float64
	Fixed   bool
	Urgent  bool
	// Ends names the stage that ends with this visit, for Result.Stages; empty if none does.
	Ends string
}

// service is the time that a visit takes.
func (v Visit) service(random *rand.Rand) float64 {
	if v.Fixed {
		return v.Seconds
	}
	return v.Seconds * random.ExpFloat64()
}

// arriving are the arrivals of one group in the order of time, without a list of them: the next of n uniform times is the least
// of n.
type arriving struct{ left []Arrivals }

// next returns when the next job arrives; false after the last.
func (a *arriving) next(random *rand.Rand) (float64, bool) {
	for len(a.left) > 0 && a.left[0].Jobs == 0 {
		a.left = a.left[1:]
	}
	if len(a.left) == 0 {
		return 0, false
	}
	from := &a.left[0]
	from.Begin += (from.End - from.Begin) * (1 - math.Pow(random.Float64(), 1/float64(from.Jobs)))
	from.Jobs--
	return from.Begin, true
}
