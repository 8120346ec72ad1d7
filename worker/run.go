package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/worker"
	"go.uber.org/zap"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/k8s"
	"holdfast.dev/holdfast/k8s/backup"
	"holdfast.dev/holdfast/k8s/download"
	"holdfast.dev/holdfast/k8s/finalize"
	"holdfast.dev/holdfast/k8s/location"
	"holdfast.dev/holdfast/k8s/metrics"
	"holdfast.dev/holdfast/k8s/objectstore"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/k8s/probe"
	"holdfast.dev/holdfast/k8s/process"
	"holdfast.dev/holdfast/k8s/restore"
	"holdfast.dev/holdfast/workflows"
	"holdfast.dev/holdfast/workflows/codec"
	"holdfast.dev/holdfast/workflows/connect"
	"holdfast.dev/holdfast/workflows/contract"
)

// stopTimeout is given to activities in flight at the end; a Pod's grace period must be longer.
const stopTimeout = 20 * time.Second

// concurrentWorkflowTasks is how many workflows are served at a time.
const concurrentWorkflowTasks = 32

// kube is the worker's view of the cluster: reads and writes at the API server itself, nothing cached.
type kube struct {
	config *rest.Config
	client client.Client
	// discovery asks what the API server serves.
	discovery discovery.DiscoveryInterface
	policy    *policy.Source
	rival     *k8s.Rival
	events    events.EventRecorder
}

func run(ctx context.Context, flags *workerFlags) error {
	logger, err := flags.Logger()
	if err != nil {
		return err
	}
	sdkMetrics, metricsPage, err := process.Metrics()
	if err != nil {
		return err
	}
	cluster, err := connectKube(ctx, flags)
	if err != nil {
		return err
	}
	temporal, err := connect.Lazy(connect.Options{
		Logger: logger, Metrics: sdkMetrics, PayloadKeysDir: flags.PayloadKeysDir,
	})
	if err != nil {
		return err
	}
	defer temporal.Close()
	var polling atomic.Bool
	prober, err := newProber(logger, cluster, temporal, &polling)
	if err != nil {
		return err
	}
	if err := flags.ServeProbes(ctx, logger, prober, metricsPage); err != nil {
		return err
	}
	if err := temporal.AwaitSearchAttributes(ctx, logger); err != nil {
		return err
	}
	return work(ctx, logger, flags, cluster, temporal, func() { polling.Store(true) })
}

func connectKube(ctx context.Context, flags *workerFlags) (*kube, error) {
	config, err := k8s.RESTConfig(flags.Kubeconfig, "holdfast-worker", flags.KubeAPIQPS, flags.KubeAPIBurst)
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	scheme := k8s.Scheme()
	direct, err := client.New(config, client.Options{Scheme: scheme, Mapper: k8s.RESTMapper(scheme)})
	if err != nil {
		return nil, fmt.Errorf("create Kubernetes client: %w", err)
	}
	dynamicClient, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create dynamic Kubernetes client: %w", err)
	}
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create Kubernetes clientset: %w", err)
	}
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: clientset.EventsV1()})
	// Activities in flight at the end have something to tell, too.
	if err := broadcaster.StartRecordingToSinkWithContext(context.WithoutCancel(ctx)); err != nil {
		return nil, fmt.Errorf("start recording events: %w", err)
	}
	return &kube{
		config: config, client: direct, discovery: clientset.Discovery(),
		policy: policy.NewSource(dynamicClient, direct, flags.OADPNamespace),
		rival:  &k8s.Rival{Reader: direct, OADPNamespace: flags.OADPNamespace},
		events: broadcaster.NewRecorder(k8s.Scheme(), "holdfast"),
	}, nil
}

var errNotPolling = errors.New("not polling the task queue yet")

func newProber(logger *zap.Logger, cluster *kube, temporal *connect.Temporal, polling *atomic.Bool) (*probe.Prober, error) {
	apiServer, err := probe.APIServer(cluster.config)
	if err != nil {
		return nil, err
	}
	return probe.New(logger,
		probe.Check{Name: "temporal", Ask: temporal.Ask},
		probe.Check{Name: "search-attributes", Ask: temporal.EnsureSearchAttributes, Every: connect.AttributesInterval},
		probe.Check{Name: "worker", Ask: func(context.Context) error {
			if !polling.Load() {
				return errNotPolling
			}
			return nil
		}},
		probe.Check{Name: "payload-keys", Ask: temporal.PayloadKeys.Refresh, Every: codec.RefreshInterval},
		probe.Check{Name: "kubernetes", Ask: apiServer},
		probe.Check{Name: "non-admin-controller", Ask: cluster.rival.Probe},
		probe.Check{Name: "policy", Ask: func(ctx context.Context) error {
			_, err := cluster.policy.Get(ctx)
			problem := cluster.policy.Problem()
			metrics.SetPolicyProblem(problem != "")
			if err == nil && problem != "" {
				err = errors.New(problem)
			}
			return err
		}},
	), nil
}

func work(
	ctx context.Context, logger *zap.Logger, flags *workerFlags, cluster *kube, temporal *connect.Temporal, started func(),
) error {
	fatal := make(chan error, 1)
	fail := func(err error) {
		select {
		case fatal <- err:
		default: // one is enough
		}
	}
	decided := newDecisions(logger, temporal.RefusesAnonymous)
	decided.watch(ctx, flags.ApproveThroughTemporal)
	queues := []string{contract.TaskQueue(flags.ClusterID), contract.SharedTaskQueue}
	runners := []worker.Worker{newWorker(temporal, flags, cluster, decided, fail), newSharedWorker(temporal.Client, fail)}
	if flags.FDB.BinDir != "" {
		tools, remove, err := newToolsWorker(temporal.Client, flags, cluster, fail)
		if err != nil {
			return err
		}
		defer remove()
		runners, queues = append(runners, tools), append(queues, contract.FDBTaskQueue(flags.ClusterID))
	}
	stop, err := startAll(runners)
	if err != nil {
		return fmt.Errorf("start worker on task queues %s: %w", strings.Join(queues, ", "), err)
	}
	defer stop()
	started()
	logger.Info("worker started", zap.Strings("taskQueues", queues), zap.String("temporalNamespace", temporal.Namespace),
		zap.String("deployment", flags.Deployment.Version.DeploymentName), zap.String("buildID", flags.Deployment.Version.BuildID))
	select {
	case <-ctx.Done():
		logger.Info("worker stopping")
		return nil
	case err := <-fatal:
		return fmt.Errorf("worker on task queues %s: %w", strings.Join(queues, ", "), err)
	}
}

// newWorker runs the workflows and short activities of the Kubernetes cluster.
func newWorker(
	temporal *connect.Temporal, flags *workerFlags, cluster *kube, decided *decisions, fatal func(error),
) worker.Worker {
	runner := worker.New(temporal.Client, contract.TaskQueue(flags.ClusterID), worker.Options{
		WorkerStopTimeout: stopTimeout,
		DeploymentOptions: flags.Deployment,
		// Each holds a workflow task open for some Kubernetes calls. More at once would only make each slower, until it
		// exceeds its two seconds and is repeated in the dear, regular form; here they wait in the task queue for nothing.
		MaxConcurrentWorkflowTaskExecutionSize: concurrentWorkflowTasks,
		// The simple behavior's two pollers may both wait at the worker's own sticky queue, for a minute, while new
		// workflows wait in the common one (seen at 1,000 backups in a burst); this one covers both.
		WorkflowTaskPollerBehavior: worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{}),
		Interceptors:               interceptors(),
		OnFatalError:               fatal,
	})
	workflows.Register(runner, workflows.Options{
		ResourceTimeout: flags.ResourceTimeout, VeleroStallTimeout: flags.VeleroStallTimeout,
		RestoreReadyTimeout: flags.RestoreReadyTimeout, FDBStatusInterval: flags.FDB.StatusInterval,
		FDBSnapshotLimit: flags.FDB.InitialSnapshotLimit, FDBSnapshotTimeout: flags.FDB.InitialSnapshotTimeout,
		FDBExpiryLimit: flags.FDB.ExpiryConcurrency, FDBExpiryRetryInterval: flags.FDB.ExpiryRetryInterval,
		FDBExpiryMinInterval: flags.FDB.ExpiryMinInterval, FDBExpiryTimeout: flags.FDB.ExpiryTimeout,
	})
	registerActivities(runner, flags, cluster, decided)
	registerFDB(runner, flags.FDB, cluster, temporal.Client)
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
