package watch

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	velerov2alpha1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v2alpha1"
	"go.uber.org/zap"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/backup"
	"holdfast.dev/holdfast/k8s/metrics"
	"holdfast.dev/holdfast/k8s/watch/trim"
	"holdfast.dev/holdfast/workflows/contract"
)

const (
	concurrentReconciles = 16
	// Retries of what Temporal refused start and end at these intervals; they never give up.
	retryFirst = 100 * time.Millisecond
	retryCap   = 5 * time.Second
	// cacheSyncTimeout: an API server that is away at the start is waited for; readiness says so meanwhile.
	cacheSyncTimeout = 24 * time.Hour
	pausedInterval   = 10 * time.Second
)

// Options configures a Watcher. All fields but Lease are required.
type Options struct {
	ClusterID     string
	OADPNamespace string
	// ProgressInterval is the shortest time between two signals for Velero's progress alone.
	ProgressInterval time.Duration
	// ResyncInterval is how often every object is looked at without an event.
	ResyncInterval time.Duration
	// FoundationDB has the watcher serve FoundationDB's kinds too; else it neither watches nor needs them.
	FoundationDB bool
	Workflows    Workflows
	Schedules    Schedules
	Policy       PolicySource
	// Lease is what several watchers elect a leader by; one without it leads.
	Lease resourcelock.Interface
	// Paused returns an error while another controller serves the same kinds.
	Paused func() error
	// Refusals are those of the manager's cache, see CacheOptions.
	Refusals *Refusals
	Log      *zap.Logger
}

// PolicySource gives the admin's policy in force and tells when it was written.
type PolicySource interface {
	backup.PolicySource
	// Version changes with every write to the object that holds the policy.
	Version() string
}

// Request asks for a look at one incarnation of a NonAdminBackup.
type Request struct {
	Namespace, Name, UID string
	// Force signals without judging from the cache, which may be behind.
	Force bool
}

// Watcher turns the events of NonAdminBackups and their Velero objects into signals.
type Watcher struct {
	Options
	manager  manager.Manager
	gatherer *backup.Gatherer
	policy   *polledPolicy
	*intake
	volumes volumes
	// locations watches storage locations with the same manager.
	locations *locations
	// restores watches restores with the same manager.
	restores *restores
	// downloads watches download requests with the same manager.
	downloads *downloads
	// fdb watches FoundationDB's kinds with the same manager; nil without Options.FoundationDB.
	fdb      *foundationDB
	dirty    chan struct{} // the queue positions may have changed
	watching atomic.Bool   // all caches are filled
	recovery atomic.Pointer[recovery]
}

// errNotWatching: events are not looked at yet.
var errNotWatching = errors.New("the caches are not filled yet")

// Watching returns nil once events are turned into signals, and while the API server lets the watcher see them; for
// readiness.
func (w *Watcher) Watching(context.Context) error {
	if err := w.Refusals.recent(); err != nil {
		return err
	}
	if !w.watching.Load() {
		return errNotWatching
	}
	return nil
}

// awaitCaches returns when the caches of all kinds watched are filled; the controller's workers start then.
func (w *Watcher) awaitCaches(ctx context.Context) error {
	kinds := []client.Object{
		&oadpv1alpha1.NonAdminBackup{}, &velerov1.Backup{}, &velerov1.DeleteBackupRequest{},
		&oadpv1alpha1.NonAdminRestore{}, &velerov1.Restore{},
		&oadpv1alpha1.NonAdminDownloadRequest{}, &velerov1.DownloadRequest{},
		&oadpv1alpha1.NonAdminBackupStorageLocation{}, &velerov1.BackupStorageLocation{},
		&oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequest{}, metadataOf(secretKind),
		metadataOf(corev1.SchemeGroupVersion.WithKind("Namespace")),
		metadataOf(velerov1.SchemeGroupVersion.WithKind("PodVolumeBackup")),
		metadataOf(velerov2alpha1.SchemeGroupVersion.WithKind("DataUpload")),
		metadataOf(velerov1.SchemeGroupVersion.WithKind("PodVolumeRestore")),
		metadataOf(velerov2alpha1.SchemeGroupVersion.WithKind("DataDownload")),
	}
	if w.FoundationDB {
		kinds = append(kinds, &fdbv1alpha1.FoundationDBRestore{}, &corev1.Pod{},
			&fdbv1alpha1.FoundationDBBackup{}, &appsv1.Deployment{}) // not FoundationDBCluster: its kind may not be there
	}
	for _, kind := range kinds {
		if _, err := w.manager.GetCache().GetInformer(ctx, kind); err != nil {
			return fmt.Errorf("fill the cache of %T: %w", kind, err)
		}
	}
	w.Refusals.forget()
	w.watching.Store(true)
	return nil
}

func metadataOf(kind schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	return object
}

// CacheOptions are the manager's cache options that the watcher needs: of Velero's objects only those in the OADP
// namespace, and of every object only what is used, from the first list on. refusals learns of what is refused.
func CacheOptions(oadpNamespace string, refusals *Refusals) cache.Options {
	velero := cache.ByObject{Namespaces: map[string]cache.Config{oadpNamespace: {}}}
	return cache.Options{
		DefaultTransform:         trim.Object,
		NewInformer:              newInformer,
		DefaultWatchErrorHandler: refusals.Handle,
		ByObject: map[client.Object]cache.ByObject{
			&velerov1.Backup{}:                                           velero,
			&velerov1.Restore{}:                                          velero,
			&velerov1.DeleteBackupRequest{}:                              velero,
			&velerov1.BackupStorageLocation{}:                            velero,
			&velerov1.PodVolumeBackup{}:                                  velero,
			&velerov2alpha1.DataUpload{}:                                 velero,
			&velerov1.PodVolumeRestore{}:                                 velero,
			&velerov2alpha1.DataDownload{}:                               velero,
			&oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequest{}: velero,
			&velerov1.DownloadRequest{}:                                  velero,
			&appsv1.Deployment{}:                                         {Label: agentsSelector()},
			&corev1.Pod{}:                                                {Label: expirySelector()},
		},
	}
}

// Add adds the watcher to a manager.
func Add(mgr manager.Manager, options Options) (*Watcher, error) {
	polled := &polledPolicy{source: options.Policy}
	w := &Watcher{
		Options: options,
		manager: mgr,
		policy:  polled,
		gatherer: &backup.Gatherer{
			Reader: mgr.GetClient(), Policy: polled,
			ClusterID: options.ClusterID, OADPNamespace: options.OADPNamespace,
		},
		intake: newIntake(),
		dirty:  make(chan struct{}, 1),
	}
	controller := builder.TypedControllerManagedBy[Request](mgr).
		Named("nonadminbackup").
		Watches(&oadpv1alpha1.NonAdminBackup{}, w.backupEvents()).
		Watches(&velerov1.Backup{}, w.veleroBackupEvents()).
		Watches(&velerov1.DeleteBackupRequest{}, w.deleteRequestEvents()).
		Watches(&oadpv1alpha1.NonAdminBackupStorageLocation{}, w.locationEvents()).
		Watches(&velerov1.BackupStorageLocation{}, w.locationEvents()).
		WatchesMetadata(&corev1.Namespace{}, w.namespaceEvents()).
		WatchesMetadata(&velerov1.PodVolumeBackup{}, w.volumeEvents()).
		WatchesMetadata(&velerov2alpha1.DataUpload{}, w.volumeEvents())
	if err := w.feed(controller, w.look); err != nil {
		return nil, fmt.Errorf("build the watcher of NonAdminBackups: %w", err)
	}
	if err := errors.Join(w.addLocations(), w.addRestores(), w.addDownloads(), w.addFoundationDB()); err != nil {
		return nil, err
	}
	for _, run := range []manager.RunnableFunc{
		w.awaitCaches, w.watchPolicy, w.handOver, w.restores.handOver, w.lead,
	} {
		if err := mgr.Add(run); err != nil {
			return nil, fmt.Errorf("add to the manager: %w", err)
		}
	}
	return w, nil
}

// look signals the workflow of an object that is not settled. It comes again after the resync interval.
func (w *Watcher) look(ctx context.Context, request Request) (reconcile.Result, error) {
	return w.attend(w, request, func(ref contract.ObjectRef, came time.Time) (reconcile.Result, error) {
		return w.judge(ctx, ref, request.Force, came)
	})
}

func (w *Watcher) judge(ctx context.Context, ref contract.ObjectRef, force bool, came time.Time) (reconcile.Result, error) {
	objects, err := gatherBackup(ctx, w.gatherer, ref)
	if err != nil {
		return reconcile.Result{}, err
	}
	if !w.mayBegin(Request{Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID, Force: force}, unstarted(objects)) {
		return reconcile.Result{}, nil
	}
	if objects.NAB == nil && !force {
		return reconcile.Result{}, w.measured(contract.KubernetesKindBackup, ref, came,
			w.Workflows.SignalRunning(ctx, contract.KindBackup, ref, contract.Changed{Reason: "deleted"}))
	}
	hasVolumes, volumeMoved := w.volumes.take(objects.BackupName)
	toCount := volumeMoved && uncounted(objects)
	again := reconcile.Result{RequeueAfter: w.ResyncInterval}
	if force {
		again = reconcile.Result{}
	} else if backup.Settled(objects.View(time.Now())) && !toCount {
		return again, nil
	}
	changed := contract.Changed{Reason: "changed", Volumes: hasVolumes}
	err = w.measured(contract.KubernetesKindBackup, ref, came, w.Workflows.SignalWithStart(ctx, contract.KindBackup, ref, changed))
	if err != nil {
		if volumeMoved {
			w.volumes.putBack(objects.BackupName)
		}
		return reconcile.Result{}, err
	}
	return again, nil
}

// measured counts what came of a signal, and returns its error.
func (w *Watcher) measured(kind string, ref contract.ObjectRef, came time.Time, err error) error {
	if err != nil {
		metrics.SignalFailed(kind)
		w.Log.Warn("cannot signal, will retry", zap.String("namespace", ref.Namespace), zap.String("name", ref.Name), zap.Error(err))
		return err
	}
	metrics.SignalAcknowledged(kind, came)
	return nil
}
