package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast.dev/holdfast/k8s/velero"
)

var (
	signals = registered(newHistogram("holdfast_signal_seconds",
		"Time from an event to Temporal's acknowledgement of the signal, retries included.",
		[]float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600}, "kind"))
	signalFailures = registered(newCounter("holdfast_signal_failures_total",
		"Signals that Temporal did not accept; each is retried.", "kind"))
)

// SignalAcknowledged measures a signal that Temporal has accepted. kind is that of the object; since is when the event arrived.
func SignalAcknowledged(kind string, since time.Time) {
	observeSince(signals.WithLabelValues(kind), since)
}

// SignalFailed counts a signal that Temporal did not accept.
func SignalFailed(kind string) { signalFailures.WithLabelValues(kind).Inc() }

// Census counts the objects in the watcher's cache.
type Census struct {
	VeleroBackups map[velero.State]int
	// LastStart is the newest start of a Velero Backup; zero if none has started.
	LastStart time.Time
	// LastValidation is when Velero last validated a BackupStorageLocation; zero if it never has.
	LastValidation time.Time
	// Phases counts the objects of kinds by phase, in lower snake case.
	Phases map[*Phases]map[string]int
	// Stalled are NonAdminBackups, StalledRestores NonAdminRestores.
	Stalled, StalledRestores int
	// VeleroRestores are counted like VeleroBackups.
	VeleroRestores map[velero.State]int
	// Turns are those that wait for a turn before Velero, with every lane that there is.
	Turns map[TurnLane]TurnsWaiting
	// PendingApprovals counts specs that wait for an administrator. OldestPending is when the oldest of them began to wait,
	// zero if there is none.
	PendingApprovals int
	OldestPending    time.Time
	// FoundationDB counts FoundationDBBackups.
	FoundationDB FDBCensus
	// Plans counts BackupPlans.
	Plans PlanCensus
	// Unfinished are backups, restores and drills, for the cluster's heartbeat.
	Unfinished Unfinished
}

// Phases is the gauge of a kind's objects by phase.
type Phases struct{ description *prometheus.Desc }

// The kinds that are counted by phase.
var (
	NonAdminBackups  = phases("holdfast_nonadminbackups", "NonAdminBackups")
	NonAdminRestores = phases("holdfast_nonadminrestores", "NonAdminRestores")
	StorageLocations = phases("holdfast_storage_locations", "NonAdminBackupStorageLocations")
)

// AllPhases are all of them.
var AllPhases []*Phases

func phases(name, kind string) *Phases {
	made := &Phases{describe(name, kind+", by phase.", "phase")}
	AllPhases = append(AllPhases, made)
	return made
}

// NewCensusCollector returns a collector that takes a census at each scrape. count must not block; it returns nil until the
// caches are filled.
func NewCensusCollector(count func() *Census) prometheus.Collector { return censusCollector(count) }

type censusCollector func() *Census

var (
	veleroBackups = describe("holdfast_velero_backups",
		"Velero Backups in the OADP namespace, by what Velero does with them.", "state")
	veleroRestores = describe("holdfast_velero_restores",
		"Velero Restores in the OADP namespace, by what Velero does with them.", "state")
	lastStart = describe("holdfast_velero_last_start_timestamp_seconds",
		"Newest startTimestamp of any Velero Backup in the OADP namespace.")
	lastValidation = describe("holdfast_velero_last_validation_timestamp_seconds",
		"Newest lastValidationTime of any BackupStorageLocation in the OADP namespace.")
	pendingApprovals = describe("holdfast_approvals_pending",
		"Storage locations whose spec waits for an administrator's decision.")
	oldestPending = describe("holdfast_approval_oldest_pending_timestamp_seconds",
		"Since when the oldest of them has been waiting.")
	stalledBackups  = describe("holdfast_stalled_backups", "NonAdminBackups that are VeleroStalled now.")
	stalledRestores = describe("holdfast_stalled_restores", "NonAdminRestores that are VeleroStalled now.")
)

// Describe implements prometheus.Collector.
func (censusCollector) Describe(descriptions chan<- *prometheus.Desc) {
	for _, description := range described {
		descriptions <- description
	}
}

// Collect implements prometheus.Collector.
func (c censusCollector) Collect(collected chan<- prometheus.Metric) {
	census := c()
	if census == nil {
		return
	}
	into := gauges(collected)
	for _, state := range velero.States {
		into.set(veleroBackups, float64(census.VeleroBackups[state]), string(state))
		into.set(veleroRestores, float64(census.VeleroRestores[state]), string(state))
	}
	into.setTime(lastStart, census.LastStart)
	into.setTime(lastValidation, census.LastValidation)
	for of, counted := range census.Phases {
		for phase, number := range counted {
			into.set(of.description, float64(number), phase)
		}
	}
	into.set(stalledBackups, float64(census.Stalled))
	into.set(stalledRestores, float64(census.StalledRestores))
	into.set(pendingApprovals, float64(census.PendingApprovals))
	into.setTime(oldestPending, census.OldestPending)
	collectTurns(census.Turns, time.Now(), into)
	census.FoundationDB.collect(into)
	census.Plans.collect(into)
}
