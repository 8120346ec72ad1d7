package main

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/spf13/pflag"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/activities/fdblock"
	"holdfast.dev/holdfast/k8s/fdb"
	fdbrestore "holdfast.dev/holdfast/k8s/fdb/restore"
	"holdfast.dev/holdfast/workflows"
	"holdfast.dev/holdfast/workflows/connect"
	"holdfast.dev/holdfast/workflows/contract"
)

// fdbFlags are the worker's settings for FoundationDB.
type fdbFlags struct {
	// BinDir has a folder with FoundationDB's tools for each version; empty if this worker runs none.
	BinDir                 string
	InitialSnapshotLimit   int
	InitialSnapshotTimeout time.Duration
	StatusInterval         time.Duration
	ExpiryConcurrency      int
	ExpiryRetryInterval    time.Duration
	ExpiryMinInterval      time.Duration
	ExpiryTimeout          time.Duration
	AllowFileURLs          bool
	Cage                   cageFlags
}

// concurrentTools is how many tools a worker runs at a time. Each has a process of its own, and one whose database does not
// answer takes its whole limit.
const concurrentTools = 20

func (f *fdbFlags) Bind(flags *pflag.FlagSet) {
	flags.StringVar(&f.BinDir, "fdb-bin-dir", "",
		"folder with FoundationDB's tools, <major.minor>/fdbbackup; without it this worker serves no FoundationDB backup")
	flags.IntVar(&f.InitialSnapshotLimit, "fdb-initial-snapshot-limit", 1,
		"how many FoundationDB backups of this Kubernetes cluster may write their first snapshot at a time")
	flags.DurationVar(&f.InitialSnapshotTimeout, "fdb-initial-snapshot-timeout", 30*time.Minute,
		"how long a first snapshot may make no progress before another backup may write its own")
	flags.DurationVar(&f.StatusInterval, "fdb-status-interval", 5*time.Minute,
		"the longest time between two looks at a FoundationDB backup")
	flags.IntVar(&f.ExpiryConcurrency, "fdb-expiry-concurrency", 1,
		"how many pods that expire or delete FoundationDB backups may run at a time in this Kubernetes cluster")
	flags.DurationVar(&f.ExpiryRetryInterval, "fdb-expiry-retry-interval", 10*time.Minute,
		"the longest wait for a place among those pods, and until a turn that could not run is tried again")
	flags.DurationVar(&f.ExpiryMinInterval, "fdb-expiry-min-interval", time.Hour,
		"the shortest time between two expirations of a FoundationDB backup")
	flags.DurationVar(&f.ExpiryTimeout, "fdb-expiry-timeout", time.Hour,
		"how long a pod that expires or deletes FoundationDB backups may run before it is deleted")
	flags.BoolVar(&f.AllowFileURLs, "fdb-allow-file-urls", false,
		"let FoundationDB backups lie in files of the agents; for tests")
	f.Cage.Bind(flags)
}

// Validate returns an error of one line that names the flag at fault.
func (f *fdbFlags) Validate() error {
	switch {
	case f.InitialSnapshotLimit < 1:
		return errors.New("--fdb-initial-snapshot-limit: want a number of at least 1")
	case f.InitialSnapshotTimeout <= 0:
		return errors.New("--fdb-initial-snapshot-timeout: want a duration of more than zero")
	case f.StatusInterval < time.Second:
		return errors.New("--fdb-status-interval: want a duration of at least 1s")
	case f.ExpiryConcurrency < 1:
		return errors.New("--fdb-expiry-concurrency: want a number of at least 1")
	case f.ExpiryRetryInterval < time.Second:
		return errors.New("--fdb-expiry-retry-interval: want a duration of at least 1s")
	case f.ExpiryMinInterval < time.Second:
		return errors.New("--fdb-expiry-min-interval: want a duration of at least 1s")
	case f.ExpiryTimeout < time.Second:
		return errors.New("--fdb-expiry-timeout: want a duration of at least 1s")
	}
	if err := f.Cage.Validate(); err != nil || f.BinDir == "" {
		return err
	}
	if info, err := os.Stat(f.BinDir); err != nil || !info.IsDir() {
		return fmt.Errorf("--fdb-bin-dir: %q is not a folder", f.BinDir)
	}
	return nil
}

// registerFDB registers the short activities of FoundationDB backups.
func registerFDB(runner worker.ActivityRegistry, flags fdbFlags, cluster *kube, temporal client.Client) {
	backups := &activities.FDBBackups{
		Client: cluster.client, Gatherer: &fdb.Gatherer{Reader: cluster.client}, Events: cluster.events,
	}
	backups.Register(runner)
	expiries := &activities.FDBExpiries{
		Client: cluster.client, Gatherer: &fdb.Gatherer{Reader: cluster.client}, Timeout: flags.ExpiryTimeout,
	}
	expiries.Register(runner)
	coordination := &activities.FDBCoordination{Temporal: temporal}
	coordination.Register(runner)
	queue := &activities.FDBExpiryCoordination{Temporal: temporal}
	queue.Register(runner)
	restores := &activities.FDBRestores{
		Client: cluster.client, Gatherer: &fdbrestore.Gatherer{Reader: cluster.client}, Events: cluster.events,
	}
	restores.Register(runner)
}

// newSharedWorker serves the owners of FoundationDB clusters, which Kubernetes clusters have in common. It has no version: a
// worker deployment is one Kubernetes cluster's, and must not take the queue from the others.
func newSharedWorker(temporal client.Client, fatal func(error)) worker.Worker {
	runner := worker.New(temporal, contract.SharedTaskQueue, worker.Options{
		WorkerStopTimeout:          stopTimeout,
		WorkflowTaskPollerBehavior: worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{}),
		Interceptors:               interceptors(),
		OnFatalError:               fatal,
	})
	runner.RegisterWorkflowWithOptions(workflows.FDBCluster, workflow.RegisterOptions{Name: contract.WorkflowFDBCluster})
	runner.RegisterWorkflowWithOptions(workflows.FDBContainer, workflow.RegisterOptions{Name: contract.WorkflowFDBContainer})
	coordination := &activities.FDBCoordination{Temporal: temporal}
	coordination.RegisterShared(runner)
	return runner
}

// newToolsWorker runs FoundationDB's tools. What they leave behind is removed by stop.
func newToolsWorker(
	temporal *connect.Temporal, flags *workerFlags, cluster *kube, fatal func(error),
) (runner worker.Worker, stop func(), err error) {
	tools := flags.FDB.runner(temporal.Address(), cluster.config.Host)
	if err := tools.Prepare(); err != nil {
		return nil, nil, fmt.Errorf("prepare for running FoundationDB's tools: %w", err)
	}
	runner = worker.New(temporal.Client, contract.FDBTaskQueue(flags.ClusterID), worker.Options{
		WorkerStopTimeout:                  stopTimeout,
		DeploymentOptions:                  flags.Deployment,
		MaxConcurrentActivityExecutionSize: concurrentTools,
		DisableWorkflowWorker:              true,
		Interceptors:                       interceptors(),
		OnFatalError:                       fatal,
	})
	acts := &activities.FDBTools{Reader: cluster.client, Runner: tools, Locker: fdblock.New()}
	acts.Register(runner)
	restores := &activities.FDBRestoreTools{Reader: cluster.client, Runner: tools, Locker: fdblock.New()}
	restores.Register(runner)
	return runner, func() { _ = tools.Close() }, nil // a folder that stays is removed by the next worker
}

// startAll starts workers and returns what stops them, all at a time.
func startAll(runners []worker.Worker) (stop func(), err error) {
	var started []worker.Worker
	stop = func() {
		var group sync.WaitGroup
		for _, runner := range started {
			group.Go(runner.Stop)
		}
		group.Wait()
	}
	for _, runner := range runners {
		if err := runner.Start(); err != nil {
			stop()
			return nil, err
		}
		started = append(started, runner)
	}
	return stop, nil
}
