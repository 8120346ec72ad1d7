package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

var turnWait = prometheus.NewHistogramVec(prometheus.HistogramOpts{
	Name:    "holdfast_turn_wait_seconds",
	Help:    "Time from the creation of a NonAdminBackup or NonAdminRestore to its Velero object, of those that waited for a turn.",
	Buckets: longBuckets,
}, []string{"pool", "lane"})

func init() { ctrlmetrics.Registry.MustRegister(turnWait) }

// TurnsKnown creates the series of a lane at zero: an alert on an increase does not see a series that starts at one.
func TurnsKnown(lane TurnLane) { turnWait.WithLabelValues(lane.Pool, lane.Name) }

// TurnUsed is called when the Velero object of an object has been made with a turn. created is when the object was created.
func TurnUsed(lane TurnLane, created time.Time) {
	observeSince(turnWait.WithLabelValues(lane.Pool, lane.Name), created)
}

// TurnLane is a lane of a pool of turns before Velero, as the values of labels.
type TurnLane struct{ Pool, Name string }

// TurnsWaiting are the objects that wait for a turn in a lane.
type TurnsWaiting struct {
	Number int
	// Oldest is when the oldest of them was created; zero if nobody waits.
	Oldest time.Time
}

// Add adds an object that was created then.
func (w *TurnsWaiting) Add(created time.Time) {
	w.Number++
	if w.Oldest.IsZero() || created.Before(w.Oldest) {
		w.Oldest = created
	}
}

var (
	turnsWaiting = prometheus.NewDesc("holdfast_turns_waiting",
		"NonAdminBackups and NonAdminRestores that wait for a turn before Velero.", []string{"pool", "lane"}, nil)
	turnOldest = prometheus.NewDesc("holdfast_turn_oldest_waiting_seconds",
		"Time since the creation of the oldest of them; 0 if nobody waits.", []string{"pool", "lane"}, nil)
)

func collectTurns(
	lanes map[TurnLane]TurnsWaiting, now time.Time, gauge func(description *prometheus.Desc, value float64, labels ...string),
) {
	for lane, waiting := range lanes {
		age := time.Duration(0)
		if !waiting.Oldest.IsZero() {
			age = max(0, now.Sub(waiting.Oldest))
		}
		gauge(turnsWaiting, float64(waiting.Number), lane.Pool, lane.Name)
		gauge(turnOldest, age.Seconds(), lane.Pool, lane.Name)
	}
}
