package simulate

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func simulated(t *testing.T, system System) *Result {
	t.Helper()
	result, err := Run(t.Context(), system, 1, nil)
	require.NoError(t, err)
	return result
}

// oneStation is a day of jobs at one station, which is so busy.
func oneStation(servers int, busy float64, jobs int) System {
	const day = 86_400.0
	return System{
		Stations: []Station{{Name: "one", Servers: servers}},
		Groups: []Group{{
			Arrivals: []Arrivals{{End: day, Jobs: jobs}},
			Visits:   []Visit{{Seconds: busy * float64(servers) * day / float64(jobs), Ends: "all"}},
		}},
		Until: 2 * day,
	}
}

// The time at a station with one server is distributed exponentially, around the service time over the idle part (M/M/1).
func TestOneServerIsAsTheorySays(t *testing.T) {
	const busy, jobs = 0.7, 1_000_000
	system := oneStation(1, busy, jobs)
	result := simulated(t, system)
	assert.Equal(t, jobs, result.Finished)
	assert.Zero(t, result.Unfinished)
	service := system.Groups[0].Visits[0].Seconds
	want := -math.Log(0.05) * service / (1 - busy)
	assert.InEpsilon(t, want, result.Stages["all"].Percentile(95), 0.08)
	assert.InEpsilon(t, busy, result.Stations[0].BusySeconds/86_400, 0.02)
}

// Erlang C says how likely it is that a job waits, and so the mean time (M/M/c).
func TestManyServersAreAsTheorySays(t *testing.T) {
	const servers, busy, jobs = 8, 0.8, 1_000_000
	system := oneStation(servers, busy, jobs)
	service := system.Groups[0].Visits[0].Seconds
	offered := servers * busy
	term, sum := 1.0, 0.0
	for k := range servers {
		sum += term
		term *= offered / float64(k+1)
	}
	waits := term / (1 - busy) / (sum + term/(1-busy))
	wait := waits * service / (servers * (1 - busy))
	assert.InEpsilon(t, service+wait, mean(simulated(t, system).Stages["all"]), 0.05)
}

func mean(s *Spread) float64 {
	sum := 0.0
	for at, count := range s.counts {
		sum += float64(count) * least * math.Pow(growth, float64(at)-0.5)
	}
	return sum / float64(s.all)
}

func TestUrgentJobsGoFirst(t *testing.T) {
	result := simulated(t, System{
		Stations: []Station{{Servers: 1}},
		Groups: []Group{
			{Arrivals: []Arrivals{{End: 1, Jobs: 1_000}}, Visits: []Visit{{Seconds: 1, Fixed: true, Ends: "plain"}}},
			{Arrivals: []Arrivals{{Begin: 1, End: 900, Jobs: 90}}, Visits: []Visit{{Seconds: 1, Fixed: true, Urgent: true, Ends: "urgent"}}},
		},
		Until: 10_000,
	})
	assert.Equal(t, 1_090, result.Finished)
	assert.Less(t, result.Stages["urgent"].Max(), 10.0)
	assert.InDelta(t, 1_090, result.Stages["plain"].Max(), 2)
	assert.Equal(t, 999, result.Stations[0].MaxWaiting)
}

func TestWhatTheDayIsTooShortForIsUnfinished(t *testing.T) {
	result := simulated(t, System{
		Stations: []Station{{Servers: 2}},
		Groups:   []Group{{Arrivals: []Arrivals{{End: 1, Jobs: 100}}, Visits: []Visit{{Seconds: 10, Fixed: true}}}},
		Until:    101,
	})
	assert.Equal(t, 20, result.Finished)
	assert.Equal(t, 80, result.Unfinished)
}

func TestArrivalsAreSpreadOverTheirTime(t *testing.T) {
	result := simulated(t, System{
		Stations: []Station{{Servers: 1}},
		Groups: []Group{{
			Arrivals: []Arrivals{{End: 10, Jobs: 2_000}, {Begin: 50, End: 60, Jobs: 2_000}},
			Visits:   []Visit{{Seconds: 0, Fixed: true, Ends: "all"}},
		}},
		Until: 55,
	})
	assert.InDelta(t, 3_000, result.Finished, 100)
	assert.LessOrEqual(t, result.LastFinished, 55.0)
}

func TestItCanBeInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Run(ctx, oneStation(1, 0.5, 10), 1, nil)
	require.ErrorIs(t, err, context.Canceled)
}
