package size

import (
	"cmp"
	"math"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/activities/plan"
)

// Estimate is what the load needs.
type Estimate struct {
	Load Load `json:"load"`
	// BackupsPerSecond is of the whole fleet, over the day; PeakPerSecond while the runs of one due time begin.
	BackupsPerDay    float64 `json:"backupsPerDay"`
	BackupsPerSecond float64 `json:"backupsPerSecond"`
	PeakPerSecond    float64 `json:"peakPerSecond"`
	// Cluster is about each cluster, Temporal about what all share.
	Cluster  Cluster  `json:"cluster"`
	Temporal Temporal `json:"temporal"`
	// Limits are sorted by use, the highest first.
	Limits []Limit `json:"limits"`
}

// Deployment is one of Holdfast's own.
type Deployment struct {
	Replicas int `json:"replicas"`
	// Cores are of all replicas at the peak.
	Cores         float64 `json:"cores"`
	GoMemLimitMiB int     `json:"goMemLimitMiB"`
	// MemoryMiB is the limit of each replica.
	MemoryMiB int `json:"memoryMiB"`
}

// Cluster is what one Kubernetes cluster needs. Cores are at the peak.
type Cluster struct {
	StoredBackups     float64    `json:"storedBackups"`
	Worker            Deployment `json:"worker"`
	Watcher           Deployment `json:"watcher"`
	APIServerCores    float64    `json:"apiServerCores"`
	APIServerRequests float64    `json:"apiServerRequestsPerSecond"`
	EtcdCores         float64    `json:"etcdCores"`
	EtcdMiB           float64    `json:"etcdMiB"`
	// ConcurrentBackups makes the backups of a day within a day, and leaves 30 % free.
	ConcurrentBackups int `json:"concurrentBackups"`
	// AllMade is how long Velero takes for the backups of one due time with the load's own ConcurrentBackups, LeastAllMade with
	// those above. It does not keep up if that is more than the time until the next are due.
	AllMade      metav1.Duration `json:"allMade"`
	LeastAllMade metav1.Duration `json:"leastAllMade"`
}

// Temporal is what all clusters together need of it. Rates and cores are at the peak.
type Temporal struct {
	Cores             float64 `json:"cores"`
	Frontends         int     `json:"frontends"`
	DatabaseCores     float64 `json:"databaseCores"`
	Statements        float64 `json:"statementsPerSecond"`
	Transactions      float64 `json:"writingTransactionsPerSecond"`
	LogMiBPerSecond   float64 `json:"writeAheadLogMiBPerSecond"`
	DatabaseGiB       float64 `json:"databaseGiB"`
	HistoryShards     int     `json:"historyShards"`
	ScheduleStarts    float64 `json:"scheduleStartsPerSecond"`
	FrontendPerSecond float64 `json:"frontendRequestsPerSecond"`
}

// Limit is a setting, or a fact, of a component that bounds the load.
type Limit struct {
	What string `json:"what"`
	// Use is the share of it that the load needs: above 1 it is exceeded.
	Use    float64 `json:"use"`
	Needed string  `json:"needed"`
	Bound  string  `json:"bound"`
	// Change is what to do about it.
	Change string `json:"change"`
}

// Size estimates a valid load.
func Size(load Load) *Estimate {
	clusters := float64(load.Clusters)
	each := runIn(load).plus(ofBackup).plus(ofDeletion) // backups are deleted as others are made
	peak := idle.plus(ofOpenPlan.times(load.plans() / clusters)).plus(each.times(load.peak() / clusters))
	shared := alone.plus(ofIdleCluster().times(clusters)).plus(ofOpenPlan.times(load.plans())).plus(each.times(load.peak()))
	estimate := &Estimate{
		Load: load, BackupsPerDay: load.perDay(), BackupsPerSecond: load.mean(), PeakPerSecond: load.peak(),
		Cluster: Cluster{
			StoredBackups: load.stored(),
			Worker:        workerOf(load, peak), Watcher: watcherOf(load, peak),
			APIServerCores: peak[APIServerCPU] / busyShare, APIServerRequests: peak[Requests], EtcdCores: peak[EtcdCPU] / busyShare,
			EtcdMiB:           load.stored() * etcdBytesPerBackup / mib,
			ConcurrentBackups: atLeast(1, load.perDay()/clusters*load.BackupTakes.Seconds()/day.Seconds()/busyShare),
		},
		Temporal: Temporal{
			Cores: shared[TemporalCPU] / busyShare, DatabaseCores: shared[DatabaseCPU] / busyShare,
			Frontends:  atLeast(2, shared[FrontendRequests]/frontendRequests/busyShare),
			Statements: shared[Statements], Transactions: shared[Transactions], LogMiBPerSecond: shared[LogBytes] / mib,
			DatabaseGiB: (each[DatabaseBytes]*load.perDay()*load.Retention.Hours()/day.Hours() +
				databaseBytesPerPlan*load.plans()) / gib,
			HistoryShards:  shards(shared[Transactions]),
			ScheduleStarts: load.peak(), FrontendPerSecond: shared[FrontendRequests],
		},
	}
	of := &estimate.Cluster
	of.AllMade.Duration, of.LeastAllMade.Duration = load.allMade(load.ConcurrentBackups), load.allMade(of.ConcurrentBackups)
	estimate.Limits = limitsOf(estimate)
	return estimate
}

// runIn is what a plan adds to one of its backups in a cluster of the load.
func runIn(load Load) Needs {
	found := Needs{APIServerCPU: listSeconds(load.stored())}
	if requests := load.finding(); requests > 1 {
		found = Needs{APIServerCPU: getSeconds * requests, Requests: requests - 1} // instead of the list
	}
	return ofRun.plus(found.times(readingsPerRun))
}

// finding is how many requests a reading of a plan takes to find its Velero Backups.
func (l Load) finding() float64 {
	if plan.GetsAreCheaper(l.Keep, int(l.stored())) {
		return float64(l.Keep)
	}
	return 1
}

// ofIdleCluster is what a cluster in which nothing happens adds to what Temporal needs a second.
func ofIdleCluster() Needs { return idle.plus(alone.times(-1)) }

// workerOf sizes the workers for all workflows that are open in a cluster.
func workerOf(load Load, peak Needs) Deployment {
	replicas := atLeast(leastReplicas, peak[WorkerCPU]/workerCores/busyShare)
	cached := min(load.open()/float64(replicas), workerCache)
	return deployment(replicas, peak[WorkerCPU], workerRestBytes+workerBytesPerOpen*cached, leastWorker)
}

// watcherOf sizes the watchers: one leads and one follows, and each has everything in its cache.
func watcherOf(load Load, peak Needs) Deployment {
	clusters := float64(load.Clusters)
	live := watcherRestBytes + watcherBytesPerBackup*load.stored() + watcherBytesPerPlan*load.plans()/clusters +
		watcherBytesPerTenant*float64(load.Tenants)/clusters
	return deployment(leastReplicas, peak[WatcherCPU], live, leastWatcher)
}

// deployment has memory for twice what is alive, as Go's garbage collector works best with, and no less than the manifests.
func deployment(replicas int, cores, live float64, least Deployment) Deployment {
	limit := roundUp(2 * live / mib)
	sized := Deployment{
		Replicas: replicas, Cores: cores / busyShare, GoMemLimitMiB: limit, MemoryMiB: roundUp(float64(limit) / memoryLimitShare),
	}
	if sized.MemoryMiB <= least.MemoryMiB {
		sized.GoMemLimitMiB, sized.MemoryMiB = least.GoMemLimitMiB, least.MemoryMiB
	}
	return sized
}

// roundUp rounds to 64 MiB.
func roundUp(mebibytes float64) int { return 64 * atLeast(1, mebibytes/64) }

func atLeast(least int, number float64) int { return max(least, int(math.Ceil(number-1e-9))) }

// shards is a power of two: Temporal's number can never be changed.
func shards(transactions float64) int {
	number := leastShards
	for transactions*shardSeconds/float64(number) > shardBusyShare {
		number *= 2
	}
	return number
}

func byUse(limits []Limit) []Limit {
	slices.SortStableFunc(limits, func(a, b Limit) int { return cmp.Compare(b.Use, a.Use) })
	return limits
}
