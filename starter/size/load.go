package size

import (
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	day = 24 * time.Hour
	// most keeps sums far from where numbers lose their units.
	most = 100_000_000
	// mostClusters bounds what a simulation keeps of each.
	mostClusters = 10_000
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
	for _, number := range []struct {
		flag        string
		value, most int
	}{
		{"--clusters", l.Clusters, mostClusters},
		{"--tenants", l.Tenants, most},
		{"--plans-per-tenant", l.PlansPerTenant, most},
		{"--keep", l.Keep, most},
		{"--concurrent-backups", l.ConcurrentBackups, most},
	} {
		if number.value < 1 || number.value > number.most {
			return fmt.Errorf("%s: must be from 1 to %d, not %d", number.flag, number.most, number.value)
		}
	}
	switch {
	case l.Clusters > l.Tenants:
		return errors.New("--clusters: must be at most one for each tenant")
	case l.plans() > most:
		return fmt.Errorf("--plans-per-tenant: must be so few that there are at most %d plans in all", most)
	case !(l.RunsPerDay > 0) || l.RunsPerDay > day.Minutes():
		return errors.New("--runs-per-day: must be above 0, and at most one a minute")
	case l.Spread.Duration < time.Second || l.Spread.Duration > l.interval():
		return errors.New("--spread: must be at least 1s, and at most the time between two runs of a plan")
	case l.BackupTakes.Duration <= 0:
		return errors.New("--backup-takes: must be above 0")
	case l.DeletionTakes.Duration < 0:
		return errors.New("--deletion-takes: must be at least 0")
	case l.Retention.Duration < 0:
		return errors.New("--temporal-retention: must be at least 0")
	case !(l.TransactionsPerSecond > 0) || l.TransactionsPerSecond > most:
		return fmt.Errorf("--transactions-per-second: must be above 0, and at most %d", most)
	case !(l.ScheduleStarts > 0) || l.ScheduleStarts > most:
		return fmt.Errorf("--schedule-starts: must be above 0, and at most %d", most)
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

// waiting is how many backups of a due time Velero has not begun at most: it makes fewer a second than come.
func (l Load) waiting() float64 {
	clusters := float64(l.Clusters)
	made := float64(l.ConcurrentBackups) / l.BackupTakes.Seconds()
	return l.plans() / clusters * max(0, 1-made*clusters/l.peak())
}

// open is how many workflows are open in a cluster at most: those of all plans, of the backups that wait for Velero, and of those
// that it makes.
func (l Load) open() float64 {
	clusters := float64(l.Clusters)
	making := min(float64(l.ConcurrentBackups), l.peak()/clusters*l.BackupTakes.Seconds())
	return l.plans()/clusters + l.waiting() + making
}

// allMade is how long the Velero of a cluster takes for the backups of one due time, if it makes so many at a time.
func (l Load) allMade(concurrent int) time.Duration {
	taken := l.plans() / float64(l.Clusters) * l.BackupTakes.Seconds() / float64(concurrent)
	return time.Duration(max(taken, l.Spread.Seconds()+l.BackupTakes.Seconds()) * float64(time.Second))
}
