package size

import (
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	day = 24 * time.Hour
	// most keeps sums far from where numbers lose their units.
	most = 100_000_000
)

// Load is the work of a fleet.
type Load struct {
	// Clusters share one Temporal namespace; the tenants are spread evenly over them.
	Clusters       int `json:"clusters"`
	Tenants        int `json:"tenants"`
	PlansPerTenant int `json:"plansPerTenant"`
	// RunsPerDay is how often each plan makes a backup; all plans are due at the same times.
	RunsPerDay float64 `json:"runsPerDay"`
	// Spread is the time over which the runs of one due time begin: the plans' jitter.
	Spread metav1.Duration `json:"spread"`
	// Keep is how many backups of each plan are kept.
	Keep int `json:"keep"`
	// Retention is how long Temporal keeps the histories of closed workflows.
	Retention metav1.Duration `json:"temporalRetention"`
	// BackupTakes and DeletionTakes are Velero's time for each.
	BackupTakes   metav1.Duration `json:"backupTakes"`
	DeletionTakes metav1.Duration `json:"deletionTakes"`
	// ConcurrentBackups is Velero's own setting, of each cluster.
	ConcurrentBackups int `json:"concurrentBackups"`
	// ScheduleStarts is Temporal's worker.schedulerNamespaceStartWorkflowRPS.
	ScheduleStarts float64 `json:"scheduleStarts"`
	// TransactionsPerSecond is how many that write Temporal's database can do.
	TransactionsPerSecond float64 `json:"transactionsPerSecond"`
}

// Validate says which flag is wrong.
func (l Load) Validate() error {
	switch {
	case l.Clusters < 1 || l.Tenants < 1 || l.PlansPerTenant < 1 || l.Keep < 1 || l.ConcurrentBackups < 1:
		return errors.New("--clusters, --tenants, --plans-per-tenant, --keep and --concurrent-backups: want at least 1")
	case l.Tenants > most || l.PlansPerTenant > most || l.Keep > most || l.ConcurrentBackups > most || l.plans() > most:
		return errors.New("--tenants, --plans-per-tenant, --keep and --concurrent-backups: want at most 100000000, " +
			"and as many plans in all")
	case l.Clusters > l.Tenants:
		return errors.New("--clusters: want at most one for each tenant")
	case !(l.RunsPerDay > 0) || l.RunsPerDay > day.Minutes():
		return errors.New("--runs-per-day: want more than 0, and at most one a minute")
	case l.Spread.Duration <= 0 || l.Spread.Duration > l.interval():
		return errors.New("--spread: want more than 0, and at most the time between two runs of a plan")
	case l.BackupTakes.Duration <= 0 || l.DeletionTakes.Duration < 0 || l.Retention.Duration < 0:
		return errors.New("--backup-takes: want more than 0; --deletion-takes and --temporal-retention: want at least 0")
	case !(l.TransactionsPerSecond > 0) || !(l.ScheduleStarts > 0):
		return errors.New("--transactions-per-second and --schedule-starts: want more than 0")
	}
	return nil
}

func (l Load) plans() float64 { return float64(l.Tenants) * float64(l.PlansPerTenant) }

// interval is the time between two runs of a plan.
func (l Load) interval() time.Duration { return time.Duration(float64(day) / l.RunsPerDay) }

func (l Load) perDay() float64 { return l.plans() * l.RunsPerDay }

// mean and peak are runs a second: over the day, and while the runs of one due time begin.
func (l Load) mean() float64 { return l.perDay() / day.Seconds() }
func (l Load) peak() float64 { return l.plans() / l.Spread.Seconds() }

// stored is how many settled backups a cluster has.
func (l Load) stored() float64 { return l.plans() * float64(l.Keep) / float64(l.Clusters) }
