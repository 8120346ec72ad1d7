package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"holdfast.dev/holdfast/k8s/velero"
)

var (
	signals = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "holdfast_signal_seconds",
		Help:    "Time from an event to Temporal's acknowledgement of the signal, retries included.",
		Buckets: []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600},
	}, []string{"kind"})
	signalFailures = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "holdfast_signal_failures_total",
		Help: "Signals that Temporal did not accept; each is retried.",
	}, []string{"kind"})
)

func init() { ctrlmetrics.Registry.MustRegister(signals, signalFailures) }

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
	made := &Phases{prometheus.NewDesc(name, kind+", by phase.", []string{"phase"}, nil)}
	AllPhases = append(AllPhases, made)
	return made
}

// NewCensusCollector returns a collector that takes a census at each scrape. count must not block; it returns nil until the
// caches are filled.
func NewCensusCollector(count func() *Census) prometheus.Collector { return censusCollector(count) }

type censusCollector func() *Census

var (
	veleroBackups = prometheus.NewDesc("holdfast_velero_backups",
		"Velero Backups in the OADP namespace, by what Velero does with them.", []string{"state"}, nil)
	veleroRestores = prometheus.NewDesc("holdfast_velero_restores",
		"Velero Restores in the OADP namespace, by what Velero does with them.", []string{"state"}, nil)
	lastStart = prometheus.NewDesc("holdfast_velero_last_start_timestamp_seconds",
		"Newest startTimestamp of any Velero Backup in the OADP namespace.", nil, nil)
	lastValidation = prometheus.NewDesc("holdfast_velero_last_validation_timestamp_seconds",
		"Newest lastValidationTime of any BackupStorageLocation in the OADP namespace.", nil, nil)
	pendingApprovals = prometheus.NewDesc("holdfast_approvals_pending",
		"Storage locations whose spec waits for an administrator's decision.", nil, nil)
	oldestPending = prometheus.NewDesc("holdfast_approval_oldest_pending_timestamp_seconds",
		"Since when the oldest of them has been waiting.", nil, nil)
	stalledBackups  = prometheus.NewDesc("holdfast_stalled_backups", "NonAdminBackups that are VeleroStalled now.", nil, nil)
	stalledRestores = prometheus.NewDesc("holdfast_stalled_restores", "NonAdminRestores that are VeleroStalled now.", nil, nil)
)

// Describe implements prometheus.Collector.
func (censusCollector) Describe(descriptions chan<- *prometheus.Desc) {
	for _, description := range []*prometheus.Desc{
		veleroBackups, lastStart, lastValidation, stalledBackups, stalledRestores, pendingApprovals, oldestPending,
		veleroRestores, turnsWaiting, turnOldest,
	} {
		descriptions <- description
	}
	for _, phases := range AllPhases {
		descriptions <- phases.description
	}
	describeFDB(descriptions)
	describePlans(descriptions)
}

// Collect implements prometheus.Collector.
func (c censusCollector) Collect(collected chan<- prometheus.Metric) {
	census := c()
	if census == nil {
		return
	}
	gauge := func(description *prometheus.Desc, value float64, labels ...string) {
		collected <- prometheus.MustNewConstMetric(description, prometheus.GaugeValue, value, labels...)
	}
	for _, state := range velero.States {
		gauge(veleroBackups, float64(census.VeleroBackups[state]), string(state))
		gauge(veleroRestores, float64(census.VeleroRestores[state]), string(state))
	}
	if !census.LastStart.IsZero() {
		gauge(lastStart, float64(census.LastStart.Unix()))
	}
	if !census.LastValidation.IsZero() {
		gauge(lastValidation, float64(census.LastValidation.Unix()))
	}
	for of, counted := range census.Phases {
		for phase, number := range counted {
			gauge(of.description, float64(number), phase)
		}
	}
	gauge(stalledBackups, float64(census.Stalled))
	gauge(stalledRestores, float64(census.StalledRestores))
	gauge(pendingApprovals, float64(census.PendingApprovals))
	if !census.OldestPending.IsZero() {
		gauge(oldestPending, float64(census.OldestPending.Unix()))
	}
	collectTurns(census.Turns, time.Now(), gauge)
	census.FoundationDB.collect(gauge)
	census.Plans.collect(gauge)
}
