package metrics

import (
	"strings"
	"time"
	"unicode"

	"github.com/prometheus/client_golang/prometheus"

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

// Lifecycle measures and counts NonAdminBackups or NonAdminRestores.
type Lifecycle struct {
	ended                        *prometheus.CounterVec
	creation, completion, mirror prometheus.Observer
}

// newLifecycle returns the registered instruments of a kind: noun is Backup or Restore, end when it is complete.
func newLifecycle(noun, end string) *Lifecycle {
	kind, lower := "NonAdmin"+noun, strings.ToLower(noun)
	seconds := func(name, help string) prometheus.Observer {
		return registered(newHistogram("holdfast_"+lower+"_"+name+"_seconds", help, longBuckets)).WithLabelValues()
	}
	l := &Lifecycle{
		ended: registered(newCounter("holdfast_"+lower+"s_total", kind+"s that have ended, by result.", "result")),
		creation: seconds("creation", "Time from the creation of a "+kind+" to its Velero "+noun+
			", unless it was BackingOff or waited for a turn."),
		completion: seconds("completion", "Time from the creation of a "+kind+" to "+end+"."),
		mirror:     seconds("mirror", "Time from Velero's completion of a "+lower+" to its final phase in the "+kind+"'s status."),
	}
	for _, result := range Results {
		l.ended.WithLabelValues(string(result))
	}
	return l
}

var (
	// Backups measures NonAdminBackups.
	Backups = newLifecycle("Backup", "Velero's final phase in its status")
	// Restores measures NonAdminRestores.
	Restores = newLifecycle("Restore", "its end, with what follows after Velero")

	stalled = registered(newCounter("holdfast_velero_stalled_total",
		"Backups and restores found stalled: the object store holds the end, the Velero object was not updated.")).WithLabelValues()
)

// Created is called once, when the Velero object of an object has been created; not if the object was BackingOff before, because
// the time that a tenant takes to correct a spec is not ours, or has waited for a turn, which TurnUsed measures. The argument is
// its creation time.
func (l *Lifecycle) Created(created time.Time) { observeSince(l.creation, created) }

// Mirrored is called when a status first shows a final phase of Velero's. completed is Velero's completion time; zero if Velero
// gives none.
func (l *Lifecycle) Mirrored(completed time.Time) {
	if !completed.IsZero() {
		observeSince(l.mirror, completed)
	}
}

// Finished is called when an object that was created then is over, in a phase of Velero's or of its finalization.
func (l *Lifecycle) Finished(phase string, created time.Time) {
	l.ended.WithLabelValues(string(VeleroResult(phase))).Inc()
	observeSince(l.completion, created)
}

// BackupFinished is called when the status of a NonAdminBackup first shows a final phase of Velero's, with both times. A backup
// that was complete before its NonAdminBackup was created (synced from the object store) is not counted.
func BackupFinished(phase string, created, completed time.Time) {
	if completed.IsZero() || !completed.Before(created) {
		Backups.Finished(phase, created)
		Backups.Mirrored(completed)
	}
}

// Rejected is called when a spec has been refused.
func (l *Lifecycle) Rejected() { l.ended.WithLabelValues(string(ResultRejected)).Inc() }

// Deleted is called when the finalizer has been removed after a deletion.
func (l *Lifecycle) Deleted() { l.ended.WithLabelValues(string(ResultDeleted)).Inc() }

// Stalled is called once for each backup or restore that has stalled.
func Stalled() { stalled.Inc() }

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
