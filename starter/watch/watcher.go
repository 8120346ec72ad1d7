package watch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/k8s/metrics"
	"holdfast.dev/holdfast/starter/watch/caches"
	"holdfast.dev/holdfast/starter/watch/controllers"
	"holdfast.dev/holdfast/starter/watch/fdb"
	"holdfast.dev/holdfast/starter/watch/heartbeat"
	"holdfast.dev/holdfast/starter/watch/leader"
	"holdfast.dev/holdfast/starter/watch/queue"
	"holdfast.dev/holdfast/starter/watch/schedules"
	"holdfast.dev/holdfast/starter/watch/velero"
	"holdfast.dev/holdfast/workflows/connect"
)

// censusTimeout: a filled cache answers at once.
const censusTimeout = 5 * time.Second

// Options configures a Watcher. All fields but Lease are required.
type Options struct {
	ClusterID     string
	OADPNamespace string
	// ProgressInterval is the shortest time between two signals for Velero's progress alone.
	ProgressInterval time.Duration
	// ResyncInterval is how often every object is checked without an event.
	ResyncInterval time.Duration
	// FoundationDB has the watcher serve FoundationDB's kinds too; otherwise it neither watches nor needs them.
	FoundationDB bool
	// TenantLabels: the metrics have the names of tenants' objects.
	TenantLabels bool
	Workflows    connect.Workflows
	Schedules    schedules.Schedules
	// PlanSchedules lists the Schedules of plans.
	PlanSchedules schedules.PlanSchedules
	// Turns is the queue before Velero.
	Turns queue.Turns
	// Heartbeats says how the cluster is. Version is that of the program, ClusterUID returns that of the Kubernetes cluster, once
	// the watcher leads.
	Heartbeats heartbeat.Heartbeats
	Version    string
	ClusterUID func() string
	Policy     PolicySource
	// Lease is the lock by which watchers elect a leader; a watcher without one leads.
	Lease resourcelock.Interface
	// Paused returns an error while another controller serves the same kinds.
	Paused func() error
	// Refusals are those of the manager's cache, see CacheOptions.
	Refusals *caches.Refusals
	Log      *zap.Logger
}

// Watcher watches all kinds with one manager. Two may run at a time: the leader signals at once, keeps queue positions and
// Schedules, and sends heartbeats; the other one signals what the leader has not had served in time. Ends are signalled before
// starts. While Temporal is down the workqueue retries for ever.
type Watcher struct {
	Options
	kinds     []controllers.Watcher
	caches    cache.Cache
	cached    client.Client
	policy    *polledPolicy
	positions *queue.Positions
	news      *queue.News
	keeper    *schedules.Keeper
	election  *leader.Election
	watching  atomic.Bool // all caches are filled
}

// errNotWatching: events are not handled yet.
var errNotWatching = errors.New("the caches are not filled yet")

// Watching returns nil once events are turned into signals, and while the API server lets the watcher see them; for readiness.
func (w *Watcher) Watching(context.Context) error {
	if err := w.Refusals.Recent(); err != nil {
		return err
	}
	if !w.watching.Load() {
		return errNotWatching
	}
	return nil
}

// awaitCaches returns when the caches of all kinds watched are filled; the controllers' workers start then. FoundationDBCluster
// is not among them: its kind may not be there.
func (w *Watcher) awaitCaches(ctx context.Context) error {
	for _, kind := range watchedBy(w.kinds) {
		if _, err := w.caches.GetInformer(ctx, kind.Object); err != nil {
			return fmt.Errorf("fill the cache of %T: %w", kind.Object, err)
		}
	}
	w.Refusals.Forget()
	w.watching.Store(true)
	return nil
}

// stand has the watcher stand for election once all caches are filled: who leads before that signals nothing, and the other
// watcher is late.
func (w *Watcher) stand(ctx context.Context) error {
	if err := w.awaitCaches(ctx); err != nil {
		return err
	}
	return w.election.Run(ctx)
}

// watchedBy are the kinds of objects that are cached for these kinds, each once.
func watchedBy(kinds []controllers.Watcher) (all []*caches.Kind) {
	for _, watcher := range kinds {
		for _, kind := range watcher.Watched() {
			if !slices.Contains(all, kind) {
				all = append(all, kind)
			}
		}
	}
	return all
}

// CacheOptions are the manager's cache options that the watcher needs. refusals records what the API server refuses.
func CacheOptions(oadpNamespace string, refusals *caches.Refusals) cache.Options {
	env := &controllers.Env{OADPNamespace: oadpNamespace}
	kinds := append(velero.Kinds(&velero.Env{Env: env}), fdb.Kinds(env, nil)...)
	return caches.Options(watchedBy(kinds), oadpNamespace, refusals)
}

// Add adds the watcher to a manager.
func Add(mgr manager.Manager, options Options) (*Watcher, error) {
	var clusters cache.Cache
	if options.FoundationDB {
		var err error
		if clusters, err = fdb.ClusterCache(mgr, options.Refusals); err != nil {
			return nil, err
		}
	}
	w := newWatcher(mgr.GetClient(), clusters, options)
	w.caches = mgr.GetCache()
	for _, kind := range w.kinds {
		if err := kind.AddTo(mgr); err != nil {
			return nil, err
		}
	}
	for _, run := range []manager.RunnableFunc{w.stand, w.watchPolicy} {
		if err := mgr.Add(run); err != nil {
			return nil, fmt.Errorf("add to the manager: %w", err)
		}
	}
	return w, nil
}

// newWatcher makes the kinds. cached reads the caches, clusters is that of FoundationDBClusters.
func newWatcher(cached client.Client, clusters cache.Cache, options Options) *Watcher {
	w := &Watcher{
		Options: options, cached: cached, policy: &polledPolicy{source: options.Policy},
		news: queue.NewNews(&queue.News{
			Turns: options.Turns, Client: cached, ClusterID: options.ClusterID, Log: options.Log,
		}),
	}
	w.positions = queue.New(queue.Positions{
		Client: cached, OADPNamespace: w.OADPNamespace, Turns: w.Turns, Paused: w.Paused, Log: w.Log,
	})
	w.keeper = &schedules.Keeper{Schedules: w.Schedules, Policy: w.policy.current.Load, Log: w.Log}
	w.election = &leader.Election{Lease: w.Lease, Refused: w.Refusals.Take, Log: w.Log, Led: w.led}
	env := &controllers.Env{
		ClusterID: w.ClusterID, OADPNamespace: w.OADPNamespace,
		ProgressInterval: w.ProgressInterval, ResyncInterval: w.ResyncInterval,
		Client: cached, Workflows: w.Workflows, Follows: w.election.Follows, Paused: w.Paused, Log: w.Log,
	}
	w.kinds = velero.Kinds(&velero.Env{
		Env: env, Policy: w.policy, PositionsChanged: w.positions.Changed,
		DefaultPlansChanged: w.keeper.DefaultPlansChanged, TenantLabels: w.TenantLabels, Turns: w.news,
	})
	if w.FoundationDB {
		w.kinds = append(w.kinds, fdb.Kinds(env, clusters)...)
	}
	return w
}

// led does the leader's work as long as this watcher leads.
func (w *Watcher) led(ctx context.Context) {
	review := &schedules.Review{
		ClusterID: w.ClusterID, Schedules: w.PlanSchedules, Workflows: w.Workflows, Paused: w.Paused, Log: w.Log, Plans: w.plans,
	}
	beats := &heartbeat.Sender{
		Heartbeats: w.Heartbeats, Version: w.Version, ClusterUID: w.ClusterUID(), Census: w.Census, Problem: w.problem, Now: time.Now,
		Log: w.Log,
	}
	var all sync.WaitGroup
	for _, kind := range w.kinds {
		all.Go(func() { kind.Lead(ctx) })
	}
	all.Go(func() { w.positions.Run(ctx) })
	all.Go(func() { w.news.Run(ctx) })
	all.Go(func() { w.keeper.Run(ctx) })
	all.Go(func() { review.Run(ctx) })
	all.Go(func() { beats.Run(ctx) })
	all.Wait()
}

// problem says why the cluster's objects are not served, or not by the policy that is there.
func (w *Watcher) problem() string {
	if err := w.Paused(); err != nil {
		return err.Error()
	}
	return w.Policy.Problem()
}

// TemporalRecovered is called when Temporal is available again: it may have lost the workflows of objects that are not settled.
// All objects are judged.
func (w *Watcher) TemporalRecovered(ctx context.Context) {
	if !w.watching.Load() {
		return // all are judged then anyway
	}
	go func() {
		for _, kind := range w.kinds {
			kind.RequeueAll(ctx)
		}
	}()
}

// plans calls do for each BackupPlan in the cache.
func (w *Watcher) plans(ctx context.Context, do func(*holdfastv1alpha1.BackupPlan)) {
	err := caches.Each(ctx, w.cached, &holdfastv1alpha1.BackupPlan{}, func(object client.Object) {
		do(object.(*holdfastv1alpha1.BackupPlan))
	})
	if err != nil {
		w.Log.Error("list in the cache", zap.String("kind", holdfastv1alpha1.KindBackupPlan), zap.Error(err))
	}
}

// Census counts the objects in the caches, for a scrape. It walks over them without a copy and without a request, and is nil
// until the caches are filled.
func (w *Watcher) Census() *metrics.Census {
	if !w.watching.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), censusTimeout)
	defer cancel()
	census := &metrics.Census{}
	for _, kind := range w.kinds {
		if err := kind.Count(ctx, census); err != nil {
			w.Log.Error("count the objects in the caches", zap.Error(err))
			return nil
		}
	}
	return census
}
