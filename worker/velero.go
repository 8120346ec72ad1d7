package main

import (
	"time"

	"go.temporal.io/sdk/worker"
	"k8s.io/client-go/discovery"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/activities/backup"
	"holdfast.dev/holdfast/activities/buckets"
	"holdfast.dev/holdfast/activities/collection"
	"holdfast.dev/holdfast/activities/defaultplans"
	"holdfast.dev/holdfast/activities/digests"
	"holdfast.dev/holdfast/activities/download"
	"holdfast.dev/holdfast/activities/drill"
	"holdfast.dev/holdfast/activities/drill/gather"
	"holdfast.dev/holdfast/activities/fdb/coordination"
	"holdfast.dev/holdfast/activities/finalization"
	"holdfast.dev/holdfast/activities/gate"
	"holdfast.dev/holdfast/activities/heartbeat"
	"holdfast.dev/holdfast/activities/location"
	"holdfast.dev/holdfast/activities/plan"
	"holdfast.dev/holdfast/activities/queue"
	"holdfast.dev/holdfast/activities/restore"
	"holdfast.dev/holdfast/activities/stores"
	"holdfast.dev/holdfast/activities/synchronization"
	"holdfast.dev/holdfast/k8s/objectstore/clouds"
	"holdfast.dev/holdfast/k8s/process"
	"holdfast.dev/holdfast/workflows"
	"holdfast.dev/holdfast/workflows/connect"
	"holdfast.dev/holdfast/workflows/contract"
)

// newVeleroWorker runs the workflows and activities of the Kubernetes cluster but those of FoundationDB.
func newVeleroWorker(
	temporal *connect.Temporal, flags *workerFlags, cluster *kube, decided *decisions, gates gate.Activities, fatal func(error),
) worker.Worker {
	runner := worker.New(temporal.Client, contract.TaskQueue(flags.ClusterID), workerOptions(flags, fatal))
	served := func(registry worker.WorkflowRegistry) {
		workflows.RegisterQueue(registry, contract.QueueVelero, workflowOptions(flags))
	}
	served(runner)
	gates.Of(served).Register(runner)
	registerVelero(runner, temporal, flags, cluster, decided)
	return runner
}

// registerVelero registers what the workflows of the task queue call.
func registerVelero(
	runner worker.ActivityRegistry, temporal *connect.Temporal, flags *workerFlags, cluster *kube, decided *decisions,
) {
	registerActivities(runner, flags, cluster, decided)
	registerPlans(runner, temporal, flags, cluster)
	turns := &queue.Activities{
		Client: cluster.client, Policy: cluster.policy, OADPNamespace: flags.OADPNamespace, ClusterID: flags.ClusterID,
		Temporal: temporal.Client, Paused: cluster.rival.Err,
	}
	turns.Register(runner)
	census := &coordination.Activities{Temporal: temporal.Client}
	census.RegisterShared(runner)
	beats := &heartbeat.Activities{
		Discovery: discovery.ToServerVersionInterfaceWithContext(cluster.discovery), Version: process.Version(),
		Build: flags.Deployment.Version.BuildID,
	}
	beats.Register(runner)
}

func registerActivities(runner worker.ActivityRegistry, flags *workerFlags, cluster *kube, decided *decisions) {
	served := cluster.activities()
	backups := &backup.Activities{
		Cluster: served,
		Gatherer: &backup.Gatherer{
			Reader: cluster.client, Policy: cluster.policy,
			ClusterID: flags.ClusterID, OADPNamespace: flags.OADPNamespace,
		},
		Buckets:      bucketsOf(flags, cluster),
		StallTimeout: flags.VeleroStallTimeout,
	}
	backups.Register(runner)
	restorable := &restore.Gatherer{
		Reader: cluster.client, Policy: cluster.policy,
		ClusterID: flags.ClusterID, OADPNamespace: flags.OADPNamespace,
		Allowlists: &restore.Allowlists{
			Client: cluster.client, Discovery: cluster.discovery, OADPNamespace: flags.OADPNamespace,
		},
	}
	restores := &restore.Activities{
		Cluster: served, Gatherer: restorable,
		Buckets:      bucketsOf(flags, cluster),
		StallTimeout: flags.VeleroStallTimeout,
	}
	restores.Register(runner)
	reader := activities.Limited(cluster.client)
	opened := &stores.Stores{Reader: reader, OpenLocation: (&clouds.Opener{Reader: reader}).Open}
	(&finalization.Activities{
		Cluster: served,
		Finder: &finalization.Finder{
			Reader: reader, ClusterID: flags.ClusterID, OADPNamespace: flags.OADPNamespace, Stores: opened,
		},
	}).Register(runner)
	recorded := digests.Sets{Cluster: served, OADPNamespace: flags.OADPNamespace}
	(&digests.Activities{Sets: recorded, Backups: backups.Gatherer, Stores: opened}).Register(runner)
	drills := &drill.Activities{
		Cluster: served, Restores: restorable, Buckets: bucketsOf(flags, cluster),
		Stores: opened, Digests: &recorded,
		Gatherer: &gather.Gatherer{Reader: cluster.client, ClusterID: flags.ClusterID, OADPNamespace: flags.OADPNamespace},
	}
	drills.Register(runner)
	downloads := &download.Activities{
		Cluster: served,
		Gatherer: &download.Gatherer{
			Reader: cluster.client, ClusterID: flags.ClusterID, OADPNamespace: flags.OADPNamespace,
		},
	}
	downloads.Register(runner)
	locations := &location.Activities{
		Cluster: served,
		Gatherer: &location.Gatherer{
			Reader: cluster.client, Policy: cluster.policy, ReadSecrets: true,
			ClusterID: flags.ClusterID, OADPNamespace: flags.OADPNamespace,
		},
		DecisionsOff: decided.Off,
		Identity:     location.HistoryIdentity,
	}
	locations.Register(runner)
	registerPeriodic(runner, flags, cluster)
}

// activities is the cluster as activities act on it, of kinds that another controller may serve.
func (k *kube) activities() activities.Cluster {
	return activities.Cluster{Client: k.client, Events: k.events, Paused: k.rival.Err}
}

// registerPlans registers what serves BackupPlans. Their Schedules are Temporal's.
func registerPlans(runner worker.ActivityRegistry, temporal *connect.Temporal, flags *workerFlags, cluster *kube) {
	plans := &plan.Activities{
		Cluster: cluster.activities(),
		Gatherer: &plan.Gatherer{
			Reader: cluster.client, Policy: cluster.policy, ClusterID: flags.ClusterID, OADPNamespace: flags.OADPNamespace,
		},
		Schedules: &plan.Temporal{Client: temporal.Client},
		Now:       time.Now,
	}
	plans.Register(runner)
	defaults := &defaultplans.Activities{
		Cluster: cluster.activities(), Policy: cluster.policy, OADPNamespace: flags.OADPNamespace,
	}
	defaults.Register(runner)
}

func bucketsOf(flags *workerFlags, cluster *kube) *buckets.Buckets {
	return &buckets.Buckets{
		Client: cluster.client, Policy: cluster.policy, OADPNamespace: flags.OADPNamespace, Events: cluster.events,
		OpenLocation: (&clouds.Opener{Reader: activities.Limited(cluster.client)}).Open,
	}
}

// registerPeriodic registers what Schedules have done.
func registerPeriodic(runner worker.ActivityRegistry, flags *workerFlags, cluster *kube) {
	synchronization := &synchronization.Activities{
		Cluster: cluster.activities(), Policy: cluster.policy, OADPNamespace: flags.OADPNamespace,
		Buckets: bucketsOf(flags, cluster),
	}
	synchronization.Register(runner)
	collection := &collection.Activities{
		Cluster: cluster.activities(), Policy: cluster.policy, OADPNamespace: flags.OADPNamespace, ClusterID: flags.ClusterID,
		Grace: flags.CollectionGrace,
	}
	collection.Register(runner)
}
