package simulate

import "math"

// Result is what came of a day.
type Result struct {
	Finished   int
	Unfinished int
	// LastFinished is when the last of those that finished did.
	LastFinished float64
	// Stages are how long each stage took, by the name that its last visit gives it.
	Stages   map[string]*Spread
	Stations []StationResult
}

// StationResult is about one station.
type StationResult struct {
	Name        string
	BusySeconds float64
	MaxWaiting  int
}

func (r *Result) stage(name string) *Spread {
	if r.Stages[name] == nil {
		r.Stages[name] = &Spread{}
	}
	return r.Stages[name]
}

// Spread counts durations by their size, to a twentieth.
type Spread struct {
	counts []int
	all    int
	most   float64
}

const (
	least  = 1e-4 // seconds; what is shorter is counted as this
	growth = 1.05
)

func (s *Spread) add(seconds float64) {
	at := 0
	if seconds > least {
		at = int(math.Log(seconds/least)/math.Log(growth)) + 1
	}
	for len(s.counts) <= at {
		s.counts = append(s.counts, 0)
	}
	s.counts[at]++
	s.all++
	s.most = max(s.most, seconds)
}

// Max is the longest.
func (s *Spread) Max() float64 { return s.most }

// Percentile is a duration in seconds that so many of a hundred do not exceed.
func (s *Spread) Percentile(percent float64) float64 {
	rank, seen := int(math.Ceil(percent/100*float64(s.all))), 0
	for at, count := range s.counts {
		if seen += count; seen >= rank && count > 0 {
			return min(least*math.Pow(growth, float64(at)), s.most)
		}
	}
	return 0
}
