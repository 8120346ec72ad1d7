package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
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

	"holdfast.dev/holdfast/activities/gate"
	"holdfast.dev/holdfast/k8s"
	"holdfast.dev/holdfast/k8s/metrics"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/k8s/probe"
	"holdfast.dev/holdfast/k8s/process"
	"holdfast.dev/holdfast/worker/drillworker"
	"holdfast.dev/holdfast/worker/fdbworker"
	"holdfast.dev/holdfast/workflows/call"
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
	// discovery lists what the API server serves.
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
	clusterID := connect.NewClusterCheck(temporal, flags.ClusterID, func(ctx context.Context) (string, error) {
		return k8s.ClusterUID(ctx, cluster.client)
	})
	prober, err := newProber(logger, flags, cluster, temporal, clusterID, &polling)
	if err != nil {
		return err
	}
	if err := flags.ServeProbes(ctx, logger, prober, metricsPage); err != nil {
		return err
	}
	if err := temporal.AwaitSearchAttributes(ctx, logger); err != nil {
		return err
	}
	if err := clusterID.Await(ctx, logger, temporal.EnsureSearchAttributes); err != nil {
		return err
	}
	return work(ctx, logger, flags, cluster, temporal, clusterID, func() { polling.Store(true) })
}

// +kubebuilder:rbac:groups=oadp.openshift.io,namespace=openshift-adp,resources=dataprotectionapplications,verbs=list
// +kubebuilder:rbac:groups="",namespace=openshift-adp,resources=configmaps,verbs=get
// +kubebuilder:rbac:groups=apps,namespace=openshift-adp,resources=deployments,resourceNames=non-admin-controller,verbs=get
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// k8s.ClusterUID gets Namespace kube-system; activities of each of the processes may get any Namespace.

func connectKube(ctx context.Context, flags *workerFlags) (*kube, error) {
	config, err := k8s.RESTConfig(flags.Kubeconfig, "holdfast-worker", flags.KubeAPIQPS, flags.KubeAPIBurst)
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	scheme := k8s.Scheme()
	direct, err := client.New(config, client.Options{
		Scheme: scheme, Mapper: k8s.RESTMapper(scheme), FieldOwner: config.UserAgent,
	})
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
	// Activities in flight at the end write Events, too.
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

func newProber(
	logger *zap.Logger, flags *workerFlags, cluster *kube, temporal *connect.Temporal, clusterID *connect.ClusterCheck,
	polling *atomic.Bool,
) (*probe.Prober, error) {
	apiServer, err := probe.APIServer(cluster.config)
	if err != nil {
		return nil, err
	}
	checks := []probe.Check{
		{Name: "temporal", Probe: temporal.Ping},
		{Name: "search-attributes", Probe: temporal.EnsureSearchAttributes, Every: connect.AttributesInterval},
		{Name: "cluster-id", Probe: clusterID.Probe, Every: connect.ClusterCheckInterval},
		{Name: flags.process(), Probe: func(context.Context) error {
			if !polling.Load() {
				return errNotPolling
			}
			return nil
		}},
		{Name: "payload-keys", Probe: temporal.PayloadKeys.Refresh, Every: codec.RefreshInterval},
		{Name: "kubernetes", Probe: apiServer},
	}
	if flags.servesVelero() || flags.servesDrills() {
		checks = append(checks, probe.Check{Name: "non-admin-controller", Probe: cluster.rival.Probe})
	}
	if flags.servesVelero() {
		checks = append(checks, probe.Check{Name: "policy", Probe: cluster.checkPolicy}, cluster.passwordCheck(flags.OADPNamespace),
			cluster.fieldsCheck())
	}
	if flags.servesFDB() && flags.FDB.BinDir != "" {
		checks = append(checks, flags.FDB.Check())
	}
	return probe.New(logger, checks...), nil
}

func (k *kube) checkPolicy(ctx context.Context) error {
	_, err := k.policy.Get(ctx)
	problem := k.policy.Problem()
	metrics.SetPolicyProblem(problem != "")
	if err == nil && problem != "" {
		err = errors.New(problem)
	}
	return err
}

func work(
	ctx context.Context, logger *zap.Logger, flags *workerFlags, cluster *kube, temporal *connect.Temporal,
	clusterID *connect.ClusterCheck, started func(),
) error {
	fatal := make(chan error, 1)
	fail := first(fatal)
	var (
		runners []worker.Worker
		queues  []string
	)
	gates := gate.Activities{
		Log: logger, Temporal: temporal.Client, Namespace: temporal.Namespace,
		Data: codec.DataConverter(temporal.PayloadKeys), Failures: codec.FailureConverter(temporal.PayloadKeys),
	}
	if flags.servesVelero() {
		decided := newDecisions(logger, temporal.RefusesAnonymous)
		decided.watch(ctx, flags.ApproveThroughTemporal)
		runners = append(runners, newVeleroWorker(temporal, flags, cluster, decided, gates, fail))
		queues = append(queues, contract.TaskQueue(flags.ClusterID))
	}
	if flags.servesFDB() {
		fdbWorkers, err := fdbworker.New(fdbworker.Options{
			ClusterID: flags.ClusterID, Flags: flags.FDB, Workflows: workflowOptions(flags), Temporal: temporal.Client,
			Client: cluster.client, Events: cluster.events, Worker: workerOptions(flags, fail), Gates: gates,
			SharedBuildID:   os.Getenv(sharedBuildIDVariable),
			TemporalAddress: temporal.Address(), APIServer: cluster.config.Host,
		})
		if err != nil {
			return err
		}
		defer fdbWorkers.Close()
		runners, queues = append(runners, fdbWorkers.All...), append(queues, fdbWorkers.Queues...)
	}
	if flags.servesDrills() {
		runners = append(runners, drillworker.New(drillworker.Options{
			ClusterID: flags.ClusterID, Temporal: temporal.Client, Client: cluster.client, Paused: cluster.rival.Err,
			Worker: workerOptions(flags, fail),
		}))
		queues = append(queues, contract.DrillTaskQueue(flags.ClusterID))
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
	case err := <-clusterID.Taken():
		return err
	case err := <-fatal:
		return fmt.Errorf("worker on task queues %s: %w", strings.Join(queues, ", "), err)
	}
}

// first sends an error unless another one waits.
func first(fatal chan<- error) func(error) {
	return func(err error) {
		select {
		case fatal <- err:
		default:
		}
	}
}

// workerOptions hold for every task queue. No worker is created without them, nor before the cache of all workers is limited.
func workerOptions(flags *workerFlags, fatal func(error)) worker.Options {
	limitCache()
	return worker.Options{
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
	}
}

func workflowOptions(flags *workerFlags) call.Options {
	return call.Options{
		Limits: call.Limits{ResourceTimeout: flags.ResourceTimeout}, VeleroStallTimeout: flags.VeleroStallTimeout,
		RestoreReadyTimeout: flags.RestoreReadyTimeout,
	}
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
