package size

import "time"

// What was measured, by the commands in docs/capacity.md, on two cores that everything shared.
var (
	// idle is what one cluster and Temporal need a second while nothing happens.
	idle = Needs{
		WorkerCPU:        0.00516,
		WatcherCPU:       0.0127,
		TemporalCPU:      0.13,
		DatabaseCPU:      0.0272,
		APIServerCPU:     0.0443,
		EtcdCPU:          0.0196,
		Requests:         2.21,
		FrontendRequests: 0.807,
		Statements:       68.8,
		Transactions:     6.79,
		LogBytes:         8_770,
	}
	// alone is what Temporal needs of that without any cluster.
	alone = Needs{
		TemporalCPU:      0.0927,
		DatabaseCPU:      0.0055,
		FrontendRequests: 0.133,
		Statements:       8.05,
		Transactions:     0.8,
		LogBytes:         1_960,
	}
	// ofOpenPlan is what a BackupPlan that is not due needs a second, of Temporal alone.
	ofOpenPlan = Needs{
		TemporalCPU:  3.6e-6,
		DatabaseCPU:  4.1e-6,
		Statements:   0.0142,
		Transactions: 0.00396,
		LogBytes:     2.97,
	}
	// ofBackup is one NonAdminBackup, from its creation until it is settled, without Velero's own work.
	ofBackup = Needs{
		WorkerCPU:        0.0152,
		WatcherCPU:       0.0116,
		TemporalCPU:      0.0373,
		DatabaseCPU:      0.0212,
		APIServerCPU:     0.0471,
		EtcdCPU:          0.0103,
		Requests:         11,
		FrontendRequests: 5.5,
		Statements:       66.9,
		Transactions:     14.1,
		LogBytes:         101_000,
		DatabaseBytes:    62_500,
	}
	// ofDeletion is one deletion of it with its data.
	ofDeletion = Needs{
		WorkerCPU:        0.0264,
		WatcherCPU:       0.019,
		TemporalCPU:      0.0473,
		DatabaseCPU:      0.0302,
		APIServerCPU:     0.0861,
		EtcdCPU:          0.0196,
		Requests:         21.9,
		FrontendRequests: 6.33,
		Statements:       75.8,
		Transactions:     15.9,
		LogBytes:         134_000,
		DatabaseBytes:    23_500,
	}
	// ofRun is what a plan adds to one of its backups, until that is deleted.
	ofRun = Needs{
		WorkerCPU:        0.0568,
		WatcherCPU:       0.0112,
		TemporalCPU:      0.0844,
		DatabaseCPU:      0.0691,
		APIServerCPU:     0.0309,
		Requests:         33.7,
		FrontendRequests: 24,
		Statements:       318,
		Transactions:     57.4,
		LogBytes:         158_000,
		DatabaseBytes:    36_500,
	}
)

// What finding its Velero Backups adds to a run: each reading of a plan lists them, for which the API server goes through all
// that the cluster stores, or gets each of those that the plan keeps.
const (
	readingsPerRun = 4
	getSeconds     = 0.0015
	// scanSeconds is for each stored one where few are stored. Where more are it grows by scanGrowth for each, up to scanMost, which
	// was measured where 100,000 are stored.
	scanSeconds = 3e-7
	scanGrowth  = 7e-12
	scanMost    = 1e-6
)

// listSeconds is the API server's CPU time for a list by label.
func listSeconds(stored float64) float64 {
	return stored * min(scanSeconds+scanGrowth*stored, scanMost)
}

// Memory and storage.
const (
	mib = 1 << 20
	gib = 1 << 30

	// watcherRestBytes and watcherBytesPerBackup are live memory; a backup is a settled one with its Velero Backup.
	watcherRestBytes      = 30 * mib
	watcherBytesPerBackup = 5_400
	// watcherBytesPerPlan is of a plan without backups, watcherBytesPerTenant of a namespace without any object of ours.
	watcherBytesPerPlan   = 11_000
	watcherBytesPerTenant = 1_500
	// databaseBytesPerPlan are kept by Temporal as long as the plan exists, with its Schedule.
	databaseBytesPerPlan = 76_000
	// etcdBytesPerBackup is of the database file, for one that is settled, with its Velero Backup.
	etcdBytesPerBackup = 8_200
	// workerRestBytes is live memory.
	workerRestBytes = 60 * mib
	// workerBytesPerOpen is of a workflow that a worker has in its cache.
	workerBytesPerOpen = 57_000
	// workerCache is how many workflows a worker keeps at most.
	workerCache = 10_000
)

// Limits of the components, and what is assumed. What is assumed is not measured.
const (
	// etcdQuotaBytes is etcd's default for --quota-backend-bytes; more than etcdMostBytes etcd's documents do not recommend.
	etcdQuotaBytes = 2 * gib
	etcdMostBytes  = 8 * gib
	// scheduleStarts is Temporal's default for worker.schedulerNamespaceStartWorkflowRPS.
	scheduleStarts = 30
	// frontendRequests is Temporal's default for frontend.namespaceRPS, of each frontend.
	frontendRequests = 2_400
	// visibilityRequests is Temporal's default for frontend.namespaceRPS.visibility, of each frontend.
	visibilityRequests = 10
	// askedEvery is how often each process sends one of these, listedEvery how often a cluster's Schedules are listed, in pages of
	// listedAtOnce.
	askedEvery   = 2 * time.Minute
	listedEvery  = time.Minute
	listedAtOnce = 1_000
	// workerRequests is the default of --kube-api-qps, of each worker and for each kind of object.
	workerRequests = 500
	// leastShards is what docs/temporal.md recommends; mostShards is a large deployment's.
	leastShards = 512
	// shardSeconds is assumed to be the time for which a transaction holds its shard.
	shardSeconds = 0.005
	// busyShare is how much of a thing may be in use at the peak, for what is recommended.
	busyShare = 0.7
	// shardBusyShare is the same for one shard, whose transactions go one by one.
	shardBusyShare = 0.25
	// workerCores and watcherCores are the limits of deploy/base, leastReplicas are its replicas of each.
	workerCores   = 2
	watcherCores  = 1
	leastReplicas = 2
	// memoryLimitShare is how much of a container's memory limit GOMEMLIMIT may be.
	memoryLimitShare = 0.8
)

// leastWorker and leastWatcher have the memory of deploy/base, which is enough for tenants that store large objects, too.
var (
	leastWorker  = Deployment{GoMemLimitMiB: 440, MemoryMiB: 512}
	leastWatcher = Deployment{GoMemLimitMiB: 560, MemoryMiB: 768}
)
