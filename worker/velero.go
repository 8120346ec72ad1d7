package main

import (
	"go.temporal.io/sdk/worker"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/k8s/backup"
	"holdfast.dev/holdfast/k8s/download"
	"holdfast.dev/holdfast/k8s/finalize"
	"holdfast.dev/holdfast/k8s/location"
	"holdfast.dev/holdfast/k8s/objectstore"
	"holdfast.dev/holdfast/k8s/restore"
	"holdfast.dev/holdfast/workflows"
	"holdfast.dev/holdfast/workflows/connect"
	"holdfast.dev/holdfast/workflows/contract"
)

// newVeleroWorker runs the workflows and activities of the Kubernetes cluster but those of FoundationDB.
func newVeleroWorker(
	temporal *connect.Temporal, flags *workerFlags, cluster *kube, decided *decisions, fatal func(error),
) worker.Worker {
	runner := worker.New(temporal.Client, contract.TaskQueue(flags.ClusterID), workerOptions(flags, fatal))
	workflows.RegisterQueue(runner, contract.QueueVelero, workflowOptions(flags))
	registerActivities(runner, flags, cluster, decided)
	return runner
}

func registerActivities(runner worker.ActivityRegistry, flags *workerFlags, cluster *kube, decided *decisions) {
	backups := &activities.Backups{
		Client: cluster.client,
		Gatherer: &backup.Gatherer{
			Reader: cluster.client, Policy: cluster.policy,
			ClusterID: flags.ClusterID, OADPNamespace: flags.OADPNamespace,
		},
		Events:       cluster.events,
		StallTimeout: flags.VeleroStallTimeout,
		Paused:       cluster.rival.Err,
	}
	backups.Register(runner)
	restores := &activities.Restores{
		Client: cluster.client,
		Gatherer: &restore.Gatherer{
			Reader: cluster.client, Policy: cluster.policy,
			ClusterID: flags.ClusterID, OADPNamespace: flags.OADPNamespace,
			Allowlists: &restore.Allowlists{
				Client: cluster.client, Discovery: cluster.discovery, OADPNamespace: flags.OADPNamespace,
			},
		},
		Events:       cluster.events,
		StallTimeout: flags.VeleroStallTimeout,
		Paused:       cluster.rival.Err,
	}
	restores.Register(runner)
	finalizations := &activities.Finalizations{
		Client: cluster.client,
		Finder: &finalize.Finder{
			Reader: finalize.Limited(cluster.client), ClusterID: flags.ClusterID, OADPNamespace: flags.OADPNamespace,
			OpenLocation: (&objectstore.Opener{Reader: finalize.Limited(cluster.client)}).Open,
		},
		Events: cluster.events,
		Paused: cluster.rival.Err,
	}
	finalizations.Register(runner)
	downloads := &activities.Downloads{
		Client: cluster.client,
		Gatherer: &download.Gatherer{
			Reader: cluster.client, ClusterID: flags.ClusterID, OADPNamespace: flags.OADPNamespace,
		},
		Events: cluster.events,
		Paused: cluster.rival.Err,
	}
	downloads.Register(runner)
	locations := &activities.Locations{
		Client: cluster.client,
		Gatherer: &location.Gatherer{
			Reader: cluster.client, Policy: cluster.policy, ReadSecrets: true,
			ClusterID: flags.ClusterID, OADPNamespace: flags.OADPNamespace,
		},
		Events:       cluster.events,
		Paused:       cluster.rival.Err,
		DecisionsOff: decided.Off,
		Identity:     activities.HistoryIdentity,
	}
	locations.Register(runner)
	registerPeriodic(runner, flags, cluster)
}

// registerPeriodic registers what Schedules have done.
func registerPeriodic(runner worker.ActivityRegistry, flags *workerFlags, cluster *kube) {
	synchronization := &activities.Synchronization{
		Client: cluster.client, Policy: cluster.policy, OADPNamespace: flags.OADPNamespace, Paused: cluster.rival.Err,
	}
	synchronization.Register(runner)
	collection := &activities.Collection{
		Client: cluster.client, OADPNamespace: flags.OADPNamespace, Grace: flags.CollectionGrace, Paused: cluster.rival.Err,
	}
	collection.Register(runner)
}
