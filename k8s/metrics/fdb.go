package metrics

import (
	"cmp"
	"sync"
	"time"

	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Results of a run of a FoundationDB tool (a failed one has its class, contract.FDBClass, as the result), and of the release of
// a FoundationDBBackup.
const (
	resultOK        = "ok"
	resultStopped   = "stopped"
	resultAbandoned = "abandoned"
)

var (
	toolRuns = newCounter("holdfast_fdb_tool_runs_total",
		"Runs of FoundationDB's tools, by operation and result: ok or the class of the failure.", "operation", "result")
	toolSeconds = newHistogram("holdfast_fdb_tool_seconds",
		"Time that a run of a FoundationDB tool has taken, also one that was stopped at its limit.",
		[]float64{0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 45, 60, 90, 120, 300}, "operation")
	fdbReleases = newCounter("holdfast_foundationdbbackups_released_total",
		"FoundationDBBackups released after their deletion: their backup was stopped, or abandoned as it was.", "result")

	registerFDB sync.Once
)

// RegisterFDB shows the metrics of a worker that serves FoundationDB. It may be called more than once.
func RegisterFDB() {
	registerFDB.Do(func() {
		ctrlmetrics.Registry.MustRegister(toolRuns, toolSeconds, fdbReleases, fdbTurns, fdbTurnSeconds, fdbDataLeft, fdbRestoresEnded,
			fdbDrills, fdbDrillRestores)
		for _, result := range []string{resultStopped, resultAbandoned} {
			fdbReleases.WithLabelValues(result)
		}
		beginFDBExpiry()
		beginFDBDrills()
	})
}

// ToolRun counts and measures a run of a FoundationDB tool. class is that of its failure, empty if it did not fail.
func ToolRun(operation, class string, took time.Duration) {
	toolRuns.WithLabelValues(operation, cmp.Or(class, resultOK)).Inc()
	observe(toolSeconds.WithLabelValues(operation), took)
}

// FDBBackupReleased is called when the finalizers of a FoundationDBBackup have been removed after its deletion.
func FDBBackupReleased(abandoned bool) {
	result := resultStopped
	if abandoned {
		result = resultAbandoned
	}
	fdbReleases.WithLabelValues(result).Inc()
}

// FDBState says, as a label's value, whether a FoundationDBBackup is as its spec says.
type FDBState string

// The states of a FoundationDBBackup.
const (
	FDBReconciled   FDBState = "reconciled"
	FDBUnreconciled FDBState = "unreconciled"
	FDBDeleting     FDBState = "deleting"
)

// FDBCondition is a condition type and reason by which FoundationDBBackups are counted.
type FDBCondition struct{ Type, Reason string }

// FDBCensus counts the FoundationDBBackups in the watcher's cache. A time is zero where it applies to none of them.
type FDBCensus struct {
	// Backups are nil while their kind is not watched.
	Backups    map[FDBState]int
	Conditions map[FDBCondition]int
	// ObjectivesMissed counts those whose condition ObjectiveMet is False.
	ObjectivesMissed int
	// OldestRestorable is the oldest, over all backups with backupState Running, of their latest restorable points.
	OldestRestorable time.Time
	// OldestFailure is when the longest trouble of a backup began: it is being deleted, or it is not as its spec says for
	// another reason than its first snapshot or the wait for that.
	OldestFailure time.Time
}

var (
	fdbBackups = describe("holdfast_foundationdbbackups",
		"FoundationDBBackups, by whether they match their spec.", "state")
	fdbConditions = describe("holdfast_foundationdbbackup_conditions",
		"Conditions that hold of FoundationDBBackups, by type and reason.", "type", "reason")
	fdbRestorable = describe("holdfast_foundationdbbackup_oldest_restorable_timestamp_seconds",
		"Of the FoundationDBBackups with backupState Running, the oldest of their latest restorable points.")
	fdbFailure = describe("holdfast_foundationdbbackup_oldest_trouble_timestamp_seconds",
		"Since when a FoundationDBBackup has not matched its spec, first snapshots not counted.")
)

func (c FDBCensus) collect(into gauges) {
	if c.Backups == nil {
		return
	}
	for _, state := range []FDBState{FDBReconciled, FDBUnreconciled, FDBDeleting} {
		into.set(fdbBackups, float64(c.Backups[state]), string(state))
	}
	for condition, number := range c.Conditions {
		into.set(fdbConditions, float64(number), condition.Type, condition.Reason)
	}
	into.set(objectivesMissed, float64(c.ObjectivesMissed), "FoundationDBBackup")
	into.setTime(fdbRestorable, c.OldestRestorable)
	into.setTime(fdbFailure, c.OldestFailure)
}
