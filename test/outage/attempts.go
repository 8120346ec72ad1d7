package outage

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"holdfast.dev/holdfast/test/outage/least"
)

// mostAttempts is how many cases may take each other's place.
const mostAttempts = 5

// Attempts are cases of which each takes the place of the one before, which has shown nothing.
type Attempts struct {
	ended  int
	writes least.Counts[string]
}

// again is what ends a case.
type again struct{}

// Again ends the case that runs: another one takes its place.
func (a *Attempts) Again(t testing.TB, why string) {
	t.Helper()
	if a.ended++; a.ended >= mostAttempts {
		t.Fatalf("in %d cases, the last one: %s", a.ended, why)
	}
	t.Logf("another case takes the place of this one: %s", why)
	panic(again{})
}

// Completes runs a case and reports whether no other one is to take its place.
func (a *Attempts) Completes(run func()) (completed bool) {
	defer func() {
		if reason := recover(); reason != nil && reason != (again{}) {
			panic(reason)
		}
	}()
	run()
	return true
}

// RequireWrites compares the writes of a case with those that are wanted: each comes as often, in the case that has made the
// fewest of it. A busy machine tries some again; what the product does too often it does in every case.
func (a *Attempts) RequireWrites(t testing.TB, want, got []string) {
	t.Helper()
	wanted := countsOf(want)
	a.writes.Add(countsOf(got))
	if a.writes.Again(func(write string) float64 { return wanted[write] }) {
		a.Again(t, fmt.Sprintf("more writes than %q: %q", want, got))
	}
	assert.Equal(t, wanted, a.writes.Least(), "writes")
}

// FewestWrites returns the writes of an undisturbed case, sorted: each as often as in the case that has made the fewest of it.
// What comes more than once is measured again until that shows no less.
func (a *Attempts) FewestWrites(t testing.TB, got []string) []string {
	t.Helper()
	before := a.writes.Least()
	a.writes.Add(countsOf(got))
	now := a.writes.Least()
	once := func(string) float64 { return 1 }
	if !maps.Equal(before, now) && a.writes.Again(once) {
		a.Again(t, fmt.Sprintf("some of its writes come more than once: %q", got))
	}
	var fewest []string
	for _, write := range slices.Sorted(maps.Keys(now)) {
		fewest = append(fewest, slices.Repeat([]string{write}, int(now[write]))...)
	}
	return fewest
}

func countsOf(writes []string) map[string]float64 {
	counts := map[string]float64{}
	for _, write := range writes {
		counts[write]++
	}
	return counts
}

// Part is what a case does that is disturbed together with others. It comes to ready and there as a Subject does.
type Part struct {
	Name string
	Run  func(t *testing.T, attempts *Attempts, ready, there *Guest)
}

// RepeatTogether has the parts disturbed, by a call of Together, and then once more those among themselves whose cases have shown
// nothing.
func RepeatTogether(parts []Part, disturb func([]Subject)) {
	attempts := make([]Attempts, len(parts))
	var mutex sync.Mutex
	var left []int
	for i := range parts {
		left = append(left, i)
	}
	for len(left) > 0 {
		var subjects []Subject
		var again []int
		for _, i := range left {
			subjects = append(subjects, Subject{parts[i].Name, func(t *testing.T, ready, there *Guest) {
				if !attempts[i].Completes(func() { parts[i].Run(t, &attempts[i], ready, there) }) {
					mutex.Lock()
					defer mutex.Unlock()
					again = append(again, i)
				}
			}})
		}
		disturb(subjects)
		left = again
	}
}
