package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	temporalclient "go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/workflows/contract"
)

const (
	creators = 8
	// patience is how long one backup of a burst may take before the run is given up.
	patience = 10 * time.Minute
)

// rig is a stack with a stand-in for Velero and eyes on everything that happens.
type rig struct {
	stack    *env.Env
	watchers []string // their names
	client   client.WithWatch
	temporal temporalclient.Client
	velero   *standIn
	seen     *observer
	// unwatch ends what the stand-in and the observer see.
	unwatch context.CancelFunc
}

// startRig starts the stack without the real Velero, with that many watchers, which get the environment that they are shipped
// with, and creates so many namespaces.
func startRig(ctx context.Context, watchers, namespaces int, options env.Options) (*rig, error) {
	watcher, err := shippedWatcher()
	if err != nil {
		return nil, err
	}
	r, err := startRigAs(ctx, watchers, watcher, options)
	if err != nil {
		return nil, err
	}
	if err := r.createNamespaces(ctx, namespaces); err != nil {
		r.stop()
		return nil, err
	}
	return r, nil
}

// startRigAs is startRig with another environment of the watchers, and without namespaces.
func startRigAs(ctx context.Context, watchers int, watcher shipped, options env.Options) (*rig, error) {
	options.Progress, options.Holdfast = os.Stdout, true
	options.Without, options.WatchEnv = []string{env.S3, env.Velero}, watcher.environment()
	stack, err := env.Start(ctx, options)
	if err != nil {
		return nil, err
	}
	r := &rig{stack: stack, watchers: []string{env.Watcher}}
	if err := r.complete(ctx, watchers); err != nil {
		r.stop()
		return nil, err
	}
	return r, nil
}

func (r *rig) complete(ctx context.Context, watchers int) error {
	for len(r.watchers) < watchers {
		if err := r.addWatcher(ctx); err != nil {
			return err
		}
	}
	return r.connect(ctx)
}

func (r *rig) addWatcher(ctx context.Context) error {
	name := fmt.Sprintf("%s-%d", env.Watcher, len(r.watchers)+1)
	if _, err := r.stack.StartWatcher(ctx, name); err != nil {
		return err
	}
	r.watchers = append(r.watchers, name)
	return nil
}

func (r *rig) connect(ctx context.Context) error {
	config, err := r.stack.RESTConfig(env.Admin)
	if err != nil {
		return err
	}
	if r.client, err = client.NewWithWatch(config, client.Options{Scheme: k8s.Scheme()}); err != nil {
		return err
	}
	r.temporal, err = temporalclient.Dial(temporalclient.Options{HostPort: r.stack.TemporalAddress(), Logger: env.QuietLogger()})
	if err != nil {
		return err
	}
	location := &velerov1.BackupStorageLocation{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.OADPNamespace, Name: defaultLocation},
		Spec: velerov1.BackupStorageLocationSpec{
			Provider: "aws", Default: true,
			StorageType: velerov1.StorageType{ObjectStorage: &velerov1.ObjectStorageLocation{Bucket: "bench"}},
		},
		Status: velerov1.BackupStorageLocationStatus{Phase: velerov1.BackupStorageLocationPhaseAvailable},
	}
	if err := r.client.Create(ctx, location); err != nil {
		return fmt.Errorf("create the default location: %w", err)
	}
	watching, unwatch := context.WithCancel(ctx)
	r.unwatch = unwatch
	if r.velero, err = startStandIn(watching, r.client); err != nil {
		return err
	}
	r.seen, err = startObserver(watching, r.client)
	return err
}

func (r *rig) stop() {
	if r.unwatch != nil {
		r.unwatch()
	}
	if r.temporal != nil {
		r.temporal.Close()
	}
	r.stack.Stop()
}

func namespaceName(i int) string { return fmt.Sprintf("bench-%02d", i) }

func (r *rig) createNamespaces(ctx context.Context, count int) error {
	group, creating := errgroup.WithContext(ctx)
	group.SetLimit(creators)
	for i := range count {
		group.Go(func() error {
			return r.client.Create(creating, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaceName(i)}})
		})
	}
	return group.Wait()
}

func newBackup(key types.NamespacedName, spec *velerov1.BackupSpec) *oadpv1alpha1.NonAdminBackup {
	return &oadpv1alpha1.NonAdminBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Spec:       oadpv1alpha1.NonAdminBackupSpec{BackupSpec: spec},
	}
}

func (r *rig) createBackup(ctx context.Context, key types.NamespacedName) error {
	r.seen.begin(key, time.Now())
	return r.client.Create(ctx, newBackup(key, &velerov1.BackupSpec{}))
}

// load is a burst of backups over some namespaces, and what serves it and competes with it.
type load struct {
	backups, namespaces, watchers int
	// name is what the backups' names begin with; "burst" if it is empty.
	name string
	// busy processes compete for the CPU while the burst lasts.
	busy int
	// maxActive is the policy's limit of the queue before Velero; 0 for no queue.
	maxActive int
}

// measureBurst creates the backups as fast as the API server takes them and waits until all are settled. Before that, one
// backup alone in an idle cluster.
func measureBurst(ctx context.Context, of load) (*burstReport, *loneReport, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r, err := startRig(ctx, of.watchers, of.namespaces, env.Options{Audit: true})
	if err != nil {
		return nil, nil, err
	}
	defer r.stop()
	if of.maxActive > 0 {
		if err := r.limit(ctx, of.maxActive); err != nil {
			return nil, nil, err
		}
	}
	lone, err := r.measureLone(ctx)
	if err != nil {
		return nil, nil, err
	}
	burst, err := r.measure(ctx, of)
	return burst, lone, err
}

// limit writes the limit into the policy, and waits until the queue before Velero has it.
func (r *rig) limit(ctx context.Context, maxActive int) error {
	written := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.OADPNamespace, Name: policy.ConfigMapName},
		Data:       map[string]string{policy.ConfigMapOwnKey: fmt.Sprintf("queue: {maxActive: %d}", maxActive)},
	}
	if err := r.client.Create(ctx, written); err != nil {
		return fmt.Errorf("write the policy: %w", err)
	}
	for {
		var state contract.VeleroQueueState
		answer, err := r.temporal.QueryWorkflow(ctx, contract.VeleroQueueID(r.stack.ClusterID()), "", contract.QueryState)
		if err == nil {
			err = answer.Get(&state)
		}
		if err == nil && state.Rules.Limits[contract.PoolBackups] == maxActive {
			return nil
		}
		if !sleep(ctx, 100*time.Millisecond) {
			return fmt.Errorf("the queue before Velero does not have the limit: %w", errors.Join(err, ctx.Err()))
		}
	}
}

// measure creates the backups and waits until all are settled.
func (r *rig) measure(ctx context.Context, of load) (*burstReport, error) {
	before, err := r.usage()
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	keys, err := r.burst(ctx, of)
	if err != nil {
		return nil, err
	}
	burst, err := r.report(ctx, keys, begin, before)
	if err != nil {
		return nil, err
	}
	burst.BusyLoops, burst.MaxActive = of.busy, of.maxActive
	return burst, nil
}

func (r *rig) burst(ctx context.Context, of load) ([]types.NamespacedName, error) {
	stopLoops, err := startBusyLoops(ctx, of.busy)
	if err != nil {
		return nil, err
	}
	defer stopLoops()
	keys := make([]types.NamespacedName, of.backups)
	group, creating := errgroup.WithContext(ctx)
	group.SetLimit(creators)
	for i := range keys {
		name := fmt.Sprintf("%s-%05d", cmp.Or(of.name, "burst"), i)
		keys[i] = types.NamespacedName{Namespace: namespaceName(i % of.namespaces), Name: name}
		group.Go(func() error { return r.createBackup(creating, keys[i]) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if err := r.seen.await(ctx, keys); err != nil {
		return nil, fmt.Errorf("%w; stand-in: %w", err, r.velero.failure())
	}
	return keys, nil
}

// loneReport is about backups that have the cluster for themselves.
type loneReport struct {
	Backups     int    `json:"backups"`
	ToVelero    millis `json:"toVeleroMedianMs"`
	ToVeleroMax millis `json:"toVeleroMaxMs"`
}

const loneBackups = 9

func (r *rig) measureLone(ctx context.Context) (*loneReport, error) {
	var took []time.Duration
	var keys []types.NamespacedName
	for i := range loneBackups {
		key := types.NamespacedName{Namespace: namespaceName(0), Name: fmt.Sprintf("lone-%d", i)}
		keys = append(keys, key)
		if err := r.createBackup(ctx, key); err != nil {
			return nil, err
		}
		if err := r.seen.await(ctx, keys[i:]); err != nil {
			return nil, err
		}
		created, _ := r.velero.times(key)
		begun, _ := r.seen.times(key)
		took = append(took, created.Sub(begun))
	}
	if err := r.awaitQuiet(ctx, keys); err != nil { // their Events are not the burst's
		return nil, err
	}
	took = took[1:] // the first one opens connections
	return &loneReport{
		Backups: len(took), ToVelero: inMillis(percentile(took, 50)), ToVeleroMax: inMillis(percentile(took, 100)),
	}, nil
}
