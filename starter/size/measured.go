package size

// What was measured, by the commands in docs/capacity.md, on two cores that everything shared.
var (
	// idle is what one cluster and Temporal need a second while nothing happens.
	idle = Needs{
		WorkerCPU:        0.00383,
		WatcherCPU:       0.00765,
		TemporalCPU:      0.125,
		DatabaseCPU:      0.0364,
		APIServerCPU:     0.0326,
		EtcdCPU:          0.0143,
		Requests:         2.26,
		FrontendRequests: 1.15,
		Statements:       127,
		Transactions:     11.4,
		LogBytes:         8_640,
	}
	// ofBackup is one NonAdminBackup, from its creation until it is settled, without Velero's own work.
	ofBackup = Needs{
		WorkerCPU:        0.0144,
		WatcherCPU:       0.0111,
		TemporalCPU:      0.0342,
		DatabaseCPU:      0.0204,
		APIServerCPU:     0.0448,
		EtcdCPU:          0.00984,
		Requests:         11,
		FrontendRequests: 5.47,
		Statements:       66.5,
		Transactions:     14.1,
		LogBytes:         101_000,
		DatabaseBytes:    62_900,
	}
	// ofDeletion is one deletion of it with its data.
	ofDeletion = Needs{
		WorkerCPU:        0.0269,
		WatcherCPU:       0.0166,
		TemporalCPU:      0.0507,
		DatabaseCPU:      0.0315,
		APIServerCPU:     0.0748,
		EtcdCPU:          0.0172,
		Requests:         32,
		FrontendRequests: 8.61,
		Statements:       107,
		Transactions:     18.4,
		LogBytes:         122_000,
		DatabaseBytes:    23_700,
	}
	// ofRun is what a plan adds to one of its backups, until that is deleted.
	ofRun = Needs{
		WorkerCPU:        0.0614,
		WatcherCPU:       0.0135,
		TemporalCPU:      0.0819,
		DatabaseCPU:      0.0677,
		APIServerCPU:     0.036,
		Requests:         32.3,
		FrontendRequests: 25.1,
		Statements:       323,
		Transactions:     58.9,
		LogBytes:         154_000,
		DatabaseBytes:    38_100,
	}
)

// What finding its Velero Backups adds to a run: each reading of a plan lists them, for which the API server goes through all that
// the cluster stores, or gets each of those that the plan keeps.
const (
	readingsPerRun = 4
	// scanSeconds is its CPU time for each stored one, measured where 100,000 are stored; getSeconds is for a get.
	scanSeconds = 1e-6
	getSeconds  = 0.0015
	// mostGets is how many a reading gets at most.
	mostGets = 200
)

// Memory and storage.
const (
	mib = 1 << 20
	gib = 1 << 30

	// watcherRestBytes and watcherBytesPerBackup are live memory; a backup is a settled one with its Velero Backup.
	watcherRestBytes      = 30 * mib
	watcherBytesPerBackup = 5_400
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
