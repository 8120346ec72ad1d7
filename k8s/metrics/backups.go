package metrics

import (
	"strings"
	"time"
	"unicode"

	"github.com/prometheus/client_golang/prometheus"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"holdfast.dev/holdfast/k8s/velero"
)

// Result is how a NonAdminBackup or NonAdminRestore ended, as a label's value.
type Result string

// The results. The first five are Velero's final phases.
const (
	ResultCompleted        Result = "completed"
	ResultPartiallyFailed  Result = "partially_failed"
	ResultFailed           Result = "failed"
	ResultFailedValidation Result = "failed_validation"
	// ResultCancelled: Velero's phase is Cancelled, or Canceled.
	ResultCancelled Result = "cancelled"
	// ResultRejected: its spec was refused (BackingOff).
	ResultRejected Result = "rejected"
	// ResultDeleted: its finalizer was removed after its deletion.
	ResultDeleted Result = "deleted"
)

// Results are all results. Each is on the page from the start, at zero: an increase from nothing to one would be missed.
var Results = []Result{
	ResultCompleted, ResultPartiallyFailed, ResultFailed, ResultFailedValidation, ResultCancelled, ResultRejected, ResultDeleted,
}

var (
	backups = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "holdfast_backups_total",
		Help: "NonAdminBackups that have ended, by result.",
	}, []string{"result"})
	creation = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "holdfast_backup_creation_seconds",
		Help:    "Time from the creation of a NonAdminBackup to its Velero Backup, unless it was BackingOff or waited for a turn.",
		Buckets: longBuckets,
	})
	completion = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "holdfast_backup_completion_seconds",
		Help:    "Time from the creation of a NonAdminBackup to Velero's final phase in its status.",
		Buckets: longBuckets,
	})
	mirror = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "holdfast_backup_mirror_seconds",
		Help:    "Time from Velero's completion of a backup to its final phase in the NonAdminBackup's status.",
		Buckets: longBuckets,
	})
	stalled = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "holdfast_velero_stalled_total",
		Help: "Backups and restores found stalled: the object store holds the end, the Velero object was not updated.",
	})
	// longBuckets serve what takes between a tenth of a second and a day.
	longBuckets = []float64{
		0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400, 28800, 86400,
	}
)

func init() {
	ctrlmetrics.Registry.MustRegister(backups, creation, completion, mirror, stalled)
	for _, result := range Results {
		backups.WithLabelValues(string(result))
	}
}

// BackupCreated is called once, when a NonAdminBackup's Velero Backup has been created; not if the NonAdminBackup was
// BackingOff before, because the time that a tenant takes to correct a spec is not ours, or has waited for a turn, which TurnUsed
// measures. The argument is its creation time.
func BackupCreated(created time.Time) { observeSince(creation, created) }

// BackupFinished is called when the status of a NonAdminBackup first shows a final phase of Velero's. created is the
// NonAdminBackup's creation time, completed Velero's completion time; zero if Velero gives none. A backup that was complete
// before its NonAdminBackup was created (synced from the object store) is not counted.
func BackupFinished(phase string, created, completed time.Time) {
	if !completed.IsZero() && completed.Before(created) {
		return
	}
	backups.WithLabelValues(string(VeleroResult(phase))).Inc()
	observeSince(completion, created)
	if !completed.IsZero() {
		observeSince(mirror, completed)
	}
}

// BackupRejected is called when a NonAdminBackup's spec has been refused.
func BackupRejected() { backups.WithLabelValues(string(ResultRejected)).Inc() }

// BackupDeleted is called when the finalizer of a NonAdminBackup has been removed after its deletion.
func BackupDeleted() { backups.WithLabelValues(string(ResultDeleted)).Inc() }

// BackupStalled is called once for each backup that has stalled.
func BackupStalled() { stalled.Inc() }

// VeleroResult is the result by which a Velero phase is counted: the phase in lower snake case, in one spelling.
func VeleroResult(phase string) Result {
	if velero.Cancelled(phase) {
		return ResultCancelled
	}
	var snake strings.Builder
	for i, letter := range phase {
		if unicode.IsUpper(letter) && i > 0 {
			snake.WriteByte('_')
		}
		snake.WriteRune(unicode.ToLower(letter))
	}
	return Result(snake.String())
}

func observeSince(histogram prometheus.Observer, from time.Time) {
	histogram.Observe(max(0, time.Since(from).Seconds()))
}
