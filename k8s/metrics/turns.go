package metrics

import "time"

var turnWait = registered(newHistogram("holdfast_turn_wait_seconds",
	"Time from the creation of a NonAdminBackup or NonAdminRestore to its Velero object, of those that waited for a turn.",
	longBuckets, "pool", "lane"))

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
	turnsWaiting = describe("holdfast_turns_waiting",
		"NonAdminBackups and NonAdminRestores that wait for a turn before Velero.", "pool", "lane")
	turnOldest = describe("holdfast_turn_oldest_waiting_seconds",
		"Time since the creation of the oldest of them; 0 if nobody waits.", "pool", "lane")
)

func collectTurns(lanes map[TurnLane]TurnsWaiting, now time.Time, into gauges) {
	for lane, waiting := range lanes {
		age := time.Duration(0)
		if !waiting.Oldest.IsZero() {
			age = max(0, now.Sub(waiting.Oldest))
		}
		into.set(turnsWaiting, float64(waiting.Number), lane.Pool, lane.Name)
		into.set(turnOldest, age.Seconds(), lane.Pool, lane.Name)
	}
}
