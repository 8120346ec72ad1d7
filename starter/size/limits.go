package size

import (
	"fmt"
	"math"
	"time"
)

// limitsOf are the limits that the load comes near, or exceeds, the nearest first.
func limitsOf(e *Estimate) []Limit {
	clusters := float64(e.Load.Clusters)
	perDay := e.BackupsPerDay / clusters
	return byUse([]Limit{
		limit("Velero's time for backups", "hours a day in each cluster", perDay*e.Load.BackupTakes.Hours(),
			24*float64(e.Load.ConcurrentBackups),
			fmt.Sprintf("--concurrent-backups %d of Velero's server; or more clusters", e.Cluster.ConcurrentBackups)),
		limit("Velero's time for deletions", "hours a day in each cluster", perDay*e.Load.DeletionTakes.Hours(), 24,
			"more clusters, or fewer runs: Velero deletes one backup at a time"),
		limit("etcd's size", "MiB in each cluster", e.Cluster.EtcdMiB, etcdQuotaBytes/mib, etcdChange(e)),
		limit("starts by Temporal's Schedules", "a second", e.PeakPerSecond, e.Load.ScheduleStarts, startsChange(e)),
		limit("transactions of one PostgreSQL", "a second", e.Temporal.Transactions, e.Load.TransactionsPerSecond,
			"a longer jitter; Cassandra; or a Temporal of its own for some of the clusters"),
		limit("requests at two of Temporal's frontends", "a second", e.Temporal.FrontendPerSecond, 2*frontendRequests,
			fmt.Sprintf("%d frontends: frontend.namespaceRPS counts for each", e.Temporal.Frontends)),
		limit("one worker's requests for Velero Backups", "a second",
			e.PeakPerSecond/clusters*readingsPerRun*e.Load.finding()/float64(e.Cluster.Worker.Replicas), workerRequests,
			"--kube-api-qps and --kube-api-burst of the workers, or more workers"),
		limit("history shards", "busy on average", e.Temporal.Transactions*shardSeconds/leastShards, shardBusyShare,
			fmt.Sprintf("%d shards instead of %d, before the first start", e.Temporal.HistoryShards, leastShards)),
		limit("queries at two of Temporal's frontends", "a second", e.queries(), 2*visibilityRequests,
			fmt.Sprintf("frontend.namespaceRPS.visibility: %d", atLeast(visibilityRequests, e.queries()/2/busyShare))),
		limit("one watcher", "cores in each cluster", e.Cluster.Watcher.Cores*busyShare, watcherCores,
			"a higher CPU limit of the watchers, or more clusters"),
	})
}

// queries are those of visibility a second: each process asks for the search attributes, each leading watcher lists Schedules.
func (e *Estimate) queries() float64 {
	pages := math.Ceil(e.Load.plans() / float64(e.Load.Clusters) / listedAtOnce)
	processes := float64(e.Cluster.Worker.Replicas + e.Cluster.Watcher.Replicas)
	return float64(e.Load.Clusters) * (processes/askedEvery.Seconds() + pages/listedEvery.Seconds())
}

func limit(what, unit string, needed, bound float64, change string) Limit {
	return Limit{
		What: what, Use: needed / bound, Needed: number(needed) + " " + unit, Bound: number(bound), Change: change,
	}
}

func startsChange(e *Estimate) string {
	change := fmt.Sprintf("worker.schedulerNamespaceStartWorkflowRPS: %.0f", math.Ceil(e.PeakPerSecond/busyShare))
	jitter := roundedUp(e.Load.plans() / e.Load.ScheduleStarts / busyShare)
	if jitter <= e.Load.interval() {
		change += fmt.Sprintf(", or a jitter of %s", jitter)
	}
	return change
}

// roundedUp is a time that is easy to read, to minutes above one of them.
func roundedUp(seconds float64) time.Duration {
	unit := time.Second
	if seconds > 60 {
		unit = time.Minute
	}
	return time.Duration(math.Ceil(seconds*float64(time.Second)/float64(unit))) * unit
}

func etcdChange(e *Estimate) string {
	if e.Cluster.EtcdMiB > etcdMostBytes/mib*busyShare {
		return "keep fewer backups, or more clusters: above 8 GiB etcd is slow to start"
	}
	return "etcd's --quota-backend-bytes, up to 8 GiB; or keep fewer backups"
}

// number shows three digits.
func number(value float64) string {
	switch {
	case value >= 100:
		return fmt.Sprintf("%.0f", value)
	case value >= 10:
		return fmt.Sprintf("%.1f", value)
	case value >= 1:
		return fmt.Sprintf("%.2f", value)
	default:
		return fmt.Sprintf("%.3f", value)
	}
}
