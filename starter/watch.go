package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"holdfast.dev/holdfast/activities/plan"
	"holdfast.dev/holdfast/k8s"
	"holdfast.dev/holdfast/k8s/metrics"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/k8s/probe"
	"holdfast.dev/holdfast/k8s/process"
	"holdfast.dev/holdfast/k8s/shorten"
	"holdfast.dev/holdfast/starter/watch"
	"holdfast.dev/holdfast/starter/watch/caches"
	"holdfast.dev/holdfast/starter/watch/heartbeat"
	"holdfast.dev/holdfast/starter/watch/leader"
	"holdfast.dev/holdfast/starter/watch/queue"
	"holdfast.dev/holdfast/starter/watch/schedules"
	"holdfast.dev/holdfast/workflows/codec"
	"holdfast.dev/holdfast/workflows/connect"
)

// +kubebuilder:rbac:groups=oadp.openshift.io,namespace=openshift-adp,resources=dataprotectionapplications,verbs=list
// +kubebuilder:rbac:groups="",namespace=openshift-adp,resources=configmaps,resourceNames=holdfast-policy,verbs=get
// +kubebuilder:rbac:groups=apps,namespace=openshift-adp,resources=deployments,resourceNames=non-admin-controller,verbs=get
// +kubebuilder:rbac:groups="",resources=namespaces,resourceNames=kube-system,verbs=get
// +kubebuilder:rbac:groups=events.k8s.io,namespace=openshift-adp,resources=events,verbs=create;patch

type watchFlags struct {
	process.Flags
	progressInterval time.Duration
	resyncInterval   time.Duration
	// serve: serveVelero or serveAll.
	serve string
	// tenantLabels: the metrics have the names of tenants' objects.
	tenantLabels bool
}

// The values of --serve.
const (
	serveVelero = "velero"
	serveAll    = "all"
)

func (f *watchFlags) validate() error {
	if f.progressInterval <= 0 {
		return errors.New("--progress-interval: must be a duration above 0")
	}
	if f.resyncInterval < time.Second {
		return errors.New("--resync-interval: must be a duration of at least 1s")
	}
	if f.serve != serveVelero && f.serve != serveAll {
		return errors.New("--serve: must be velero or all")
	}
	return f.Validate()
}

func watchCommand() *cobra.Command {
	var flags watchFlags
	command := &cobra.Command{
		Use:   "watch",
		Short: "Watch Kubernetes and signal the workflows",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := flags.validate(); err != nil {
				return err
			}
			return runWatch(command.Context(), &flags)
		},
	}
	flags.Bind(command.Flags())
	command.Flags().DurationVar(&flags.progressInterval, "progress-interval", 15*time.Second,
		"shortest time between two signals for Velero's progress alone")
	command.Flags().DurationVar(&flags.resyncInterval, "resync-interval", 5*time.Minute,
		"how often every object is checked without an event")
	command.Flags().BoolVar(&flags.tenantLabels, "metrics-tenant-labels", false,
		"show each BackupPlan in the metrics, with its namespace and name; anyone who can read the metrics then sees these")
	command.Flags().StringVar(&flags.serve, "serve", serveAll,
		"kinds to watch: velero, or all, which adds FoundationDB's and needs their CRDs and rights")
	return command
}

func runWatch(ctx context.Context, flags *watchFlags) error {
	logger, err := flags.Logger()
	if err != nil {
		return err
	}
	sdkMetrics, metricsPage, err := process.Metrics()
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
	refusals := &caches.Refusals{}
	mgr, err := newManager(flags, refusals)
	if err != nil {
		return err
	}
	// Not the manager's client, which reads caches.
	direct, err := client.New(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("create Kubernetes client: %w", err)
	}
	clusterID := connect.NewClusterCheck(temporal, flags.ClusterID, func(ctx context.Context) (string, error) {
		return k8s.ClusterUID(ctx, direct)
	})
	watcher, prober, err := assemble(logger, flags, mgr, direct, temporal, clusterID, refusals)
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
	logger.Info("watching", zap.String("cluster", watcher.ClusterID), zap.String("temporalNamespace", temporal.Namespace))
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	return nil
}

// unlessTaken ends the manager when another Kubernetes cluster has come to use the cluster ID.
func unlessTaken(clusterID *connect.ClusterCheck) manager.RunnableFunc {
	return func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return nil
		case err := <-clusterID.Taken():
			return err
		}
	}
}

func newManager(flags *watchFlags, refusals *caches.Refusals) (manager.Manager, error) {
	config, err := k8s.RESTConfig(flags.Kubeconfig, "holdfast-watcher", flags.KubeAPIQPS, flags.KubeAPIBurst)
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	config.Wrap(caches.MeasurePages)
	scheme := k8s.Scheme()
	mgr, err := manager.New(config, manager.Options{
		Scheme: scheme,
		Client: client.Options{FieldOwner: config.UserAgent},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			return k8s.RESTMapper(scheme), nil // the watcher waits for an API server that is down, and does not call it here
		},
		Cache:                  hookCache(watch.CacheOptions(flags.OADPNamespace, refusals), flags.OADPNamespace),
		Metrics:                server.Options{BindAddress: "0"}, // served with Temporal's on one page
		HealthProbeBindAddress: "0",                              // served by our own probes
	})
	if err != nil {
		return nil, fmt.Errorf("create manager: %w", err)
	}
	return mgr, nil
}

// assemble puts the watcher together with the probes that it depends on.
func assemble(
	logger *zap.Logger, flags *watchFlags, mgr manager.Manager, direct client.Client, temporal *connect.Temporal,
	clusterID *connect.ClusterCheck, refusals *caches.Refusals,
) (*watch.Watcher, *probe.Prober, error) {
	dynamicClient, err := dynamic.NewForConfig(mgr.GetConfig())
	if err != nil {
		return nil, nil, fmt.Errorf("create dynamic Kubernetes client: %w", err)
	}
	apiServer, err := probe.APIServer(mgr.GetConfig())
	if err != nil {
		return nil, nil, err
	}
	lease, err := leader.NewLease(mgr.GetConfig(), flags.OADPNamespace)
	if err != nil {
		return nil, nil, err
	}
	source := policy.NewSource(dynamicClient, direct, flags.OADPNamespace)
	rival := &k8s.Rival{Reader: direct, OADPNamespace: flags.OADPNamespace}
	watcher, err := watch.Add(mgr, watch.Options{
		ClusterID:        flags.ClusterID,
		OADPNamespace:    flags.OADPNamespace,
		ProgressInterval: flags.progressInterval,
		ResyncInterval:   flags.resyncInterval,
		FoundationDB:     flags.serve == serveAll,
		TenantLabels:     flags.tenantLabels,
		Workflows:        hookWorkflows(&connect.Cluster{Client: temporal.Client, ClusterID: flags.ClusterID}),
		Schedules:        &schedules.Temporal{Client: temporal.Client, ClusterID: flags.ClusterID},
		PlanSchedules:    &plan.Temporal{Client: temporal.Client},
		Turns:            &queue.Temporal{Client: temporal.Client, ClusterID: flags.ClusterID},
		Heartbeats:       &heartbeat.Temporal{Client: temporal.Client, ClusterID: flags.ClusterID},
		Version:          process.Version(),
		ClusterUID:       clusterID.UID,
		Lease:            hookLease(lease),
		Policy:           source,
		Paused:           rival.Err,
		Refusals:         refusals,
		Log:              logger,
	})
	if err != nil {
		return nil, nil, err
	}
	if err := mgr.Add(unlessTaken(clusterID)); err != nil {
		return nil, nil, fmt.Errorf("add to the manager: %w", err)
	}
	if err := ctrlmetrics.Registry.Register(metrics.NewCensusCollector(watcher.Census)); err != nil {
		return nil, nil, fmt.Errorf("register the watcher's metrics: %w", err)
	}
	return watcher, probe.New(logger,
		probe.Check{Name: "temporal", Probe: temporal.Ping, Recovered: watcher.TemporalRecovered},
		probe.Check{Name: "search-attributes", Probe: temporal.EnsureSearchAttributes, Every: connect.AttributesInterval},
		probe.Check{Name: "cluster-id", Probe: clusterID.Probe, Every: connect.ClusterCheckInterval},
		probe.Check{Name: "payload-keys", Probe: temporal.PayloadKeys.Refresh, Every: codec.RefreshInterval},
		probe.Check{Name: "kubernetes", Probe: apiServer},
		probe.Check{Name: "watch", Probe: watcher.Watching},
		probe.Check{Name: "non-admin-controller", Probe: rival.Probe},
		probe.Check{Name: "policy", Probe: policyCheck(source, onPolicy(mgr.GetEventRecorder("holdfast"), flags.OADPNamespace))},
	), nil
}

// onPolicy reports problems of the policy as Events of the ConfigMap that holds it.
func onPolicy(recorder events.EventRecorder, namespace string) func(problem string) {
	document := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: policy.ConfigMapName}}
	return func(problem string) {
		recorder.Eventf(document, nil, corev1.EventTypeWarning, "PolicyProblem", "ReadPolicy", "%s",
			shorten.Text(problem, shorten.MaxEventNoteBytes))
	}
}

// policyCheck fails while the policy in force is not the one in the cluster, and reports each new problem once.
func policyCheck(source *policy.Source, report func(problem string)) func(context.Context) error {
	var reported string
	return func(context.Context) error {
		problem := source.Problem() // the watcher reads the policy every two seconds
		metrics.SetPolicyProblem(problem != "")
		if problem != reported && problem != "" {
			report(problem)
		}
		reported = problem
		if problem != "" {
			return errors.New(problem)
		}
		return nil
	}
}
