package metrics

import (
	"sync"
	"time"
)

// maxDataLeft is how many URLs holdfast_foundationdbbackup_data_left_total distinguishes in a process; the others are counted
// together.
const maxDataLeft = 500

var (
	fdbTurns = newCounter("holdfast_fdb_expiry_turns_total",
		"Turns of the queue of expirations that have ended, by job (expire or delete) and outcome.", "job", "outcome")
	fdbTurnSeconds = newHistogram("holdfast_fdb_expiry_turn_seconds",
		"Time that a turn of the queue of expirations has taken.", []float64{1, 5, 15, 30, 60, 300, 900, 1800, 3600, 7200}, "job")
	fdbDataLeft = newCounter("holdfast_foundationdbbackup_data_left_total",
		"Containers that were left in the store although they were to be deleted with their FoundationDBBackup, by URL.", "url")
	fdbRestoresEnded = newCounter("holdfast_foundationdbrestores_ended_total",
		"FoundationDBRestores that have ended, by result: completed, aborted or failed.", "result")

	dataLeft      = map[string]bool{}
	dataLeftMutex sync.Mutex
)

// beginFDBExpiry creates the series at zero: an alert on an increase does not see a series that starts at one.
func beginFDBExpiry() {
	for _, job := range []string{"expire", "delete"} {
		for _, outcome := range []string{"Done", "Refused", "NothingToDo", "NotYet", "Failed"} {
			fdbTurns.WithLabelValues(job, outcome)
		}
		fdbTurnSeconds.WithLabelValues(job)
	}
	for _, result := range []string{"completed", "aborted", "failed"} {
		fdbRestoresEnded.WithLabelValues(result)
	}
}

// FDBTurnEnded counts and measures a turn of the queue of expirations.
func FDBTurnEnded(job, outcome string, took time.Duration) {
	fdbTurns.WithLabelValues(job, outcome).Inc()
	observe(fdbTurnSeconds.WithLabelValues(job), took)
}

// FDBDataLeft counts the container of a deleted FoundationDBBackup whose data stay although their deletion was wanted.
func FDBDataLeft(url string) {
	dataLeftMutex.Lock()
	defer dataLeftMutex.Unlock()
	if !dataLeft[url] && len(dataLeft) >= maxDataLeft {
		url = "others"
	}
	dataLeft[url] = true
	fdbDataLeft.WithLabelValues(url).Inc()
}

// FDBRestoreEnded counts the end of a FoundationDBRestore: completed, aborted or failed.
func FDBRestoreEnded(result string) { fdbRestoresEnded.WithLabelValues(result).Inc() }
