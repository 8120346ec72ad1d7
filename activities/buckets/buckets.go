package buckets

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.temporal.io/sdk/activity"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/objectstore"
	"holdfast.dev/holdfast/k8s/policy"
)

// Limits of one run: a store that answers slowly, or a bucket with thousands of files, keeps no other tenant's waiting for
// long. What is left is done by the next run.
const (
	runLimit      = 4 * time.Minute
	locationLimit = 2 * time.Minute
	atOnce        = 4
	maxSteps      = 200
)

// Kubernetes Events on a NonAdminBackupStorageLocation.
const (
	eventWithheld       = "BackupWithheld"
	eventUnsynchronized = "BucketNotSynchronized"
)

// Location is a tenant's storage location.
type Location struct {
	Velero *velerov1.BackupStorageLocation
	// Of is the object that it was made for; nil if that is gone, or not proven.
	Of *oadpv1alpha1.NonAdminBackupStorageLocation
	// Period is the time between two synchronizations; 0 is never.
	Period time.Duration
}

// due: Velero reaches the location, and its period has passed.
func (l *Location) due(now time.Time) bool {
	synced := l.Velero.Status.LastSyncedTime
	return l.Of != nil && l.Period > 0 && l.Velero.Status.Phase == velerov1.BackupStorageLocationPhaseAvailable &&
		(synced == nil || !now.Before(synced.Add(l.Period)))
}

// Buckets synchronizes Backups with tenants' buckets.
type Buckets struct {
	// Client reads from and writes to the API server itself.
	Client client.Client
	// Policy is the administrator's policy in force.
	Policy interface {
		Get(context.Context) (policy.Policy, error)
	}
	OADPNamespace string
	OpenLocation  func(context.Context, *velerov1.BackupStorageLocation) (*objectstore.Store, error)
	// Events writes Events for the tenant, on its storage location; best effort.
	Events events.EventRecorder
}

// Result counts what a run has done.
type Result struct {
	// Brought counts Velero Backups created for what was found, Removed those deleted since their files are gone.
	Brought, Removed int
	// Withheld counts backups that Velero does not get to see, since their files are not within the limits.
	Withheld int
	// Untrusted counts backups in a bucket that are not proven to be its owner's.
	Untrusted int
	// Failed counts locations whose bucket could not be read.
	Failed int
}

// run is one synchronization over all locations.
type run struct {
	*Buckets
	maxArchive int64
	lock       sync.Mutex
	result     Result
	lists      sync.Mutex // one list of volumes is in memory at a time
}

// Synchronize goes through the locations that are due. maxArchive is how large an archive may be, unpacked, in bytes. Errors are
// the API server's; a store's is the tenant's to see.
func (b *Buckets) Synchronize(ctx context.Context, locations []Location, maxArchive int64) (Result, error) {
	defer activities.Beating(ctx)()
	r := &run{Buckets: b, maxArchive: maxArchive}
	for i := range locations {
		if err := b.endVeleroSync(ctx, locations[i].Velero); err != nil {
			return r.result, err
		}
	}
	limited, cancel := context.WithTimeout(ctx, runLimit)
	defer cancel()
	var group errgroup.Group
	group.SetLimit(atOnce)
	for _, i := range rand.Perm(len(locations)) { // the first ones are not always the same
		if location := &locations[i]; location.due(time.Now()) {
			group.Go(func() error {
				if limited.Err() != nil {
					return nil
				}
				return r.synchronize(limited, location)
			})
		}
	}
	err := group.Wait()
	return r.result, err
}

// endVeleroSync switches Velero's own synchronization off. The location's workflow does the same when it writes the spec.
func (b *Buckets) endVeleroSync(ctx context.Context, location *velerov1.BackupStorageLocation) error {
	if period := location.Spec.BackupSyncPeriod; period != nil && period.Duration == 0 {
		return nil
	}
	before := location.DeepCopy()
	location.Spec.BackupSyncPeriod = &metav1.Duration{}
	return b.patchLocation(ctx, location, before)
}

func (b *Buckets) patchLocation(ctx context.Context, location, before *velerov1.BackupStorageLocation) error {
	if err := b.Client.Patch(ctx, location, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("patch BackupStorageLocation %s: %w", location.Name, err)
	}
	return nil
}

// synchronize goes through one location, and notes when.
func (r *run) synchronize(ctx context.Context, location *Location) error {
	ctx, cancel := context.WithTimeout(ctx, locationLimit)
	defer cancel()
	began := metav1.Now()
	err := r.goThrough(ctx, location)
	var problem *objectstore.Error
	if ctx.Err() != nil {
		problem = objectstore.Late("read storage location " + location.Velero.Name)
	}
	if problem != nil || errors.As(err, &problem) {
		r.count(func(result *Result) { result.Failed++ })
		r.report(ctx, location, eventUnsynchronized, "The backups in the bucket are not synchronized: "+problem.Error())
		return nil
	}
	if err != nil {
		return err
	}
	before := location.Velero.DeepCopy()
	location.Velero.Status.LastSyncedTime = &began
	return r.patchLocation(ctx, location.Velero, before)
}

func (r *run) goThrough(ctx context.Context, location *Location) error {
	store, err := r.OpenLocation(ctx, location.Velero)
	if err != nil {
		return err
	}
	defer store.Close()
	stored, err := store.Backups(ctx)
	if err != nil {
		return err
	}
	var present velerov1.BackupList
	if err := r.Client.List(ctx, &present, client.InNamespace(r.OADPNamespace),
		client.MatchingLabels{velerov1.StorageLocationLabel: location.Velero.Name}); err != nil {
		return fmt.Errorf("list the Backups in storage location %s: %w", location.Velero.Name, err)
	}
	at := &visit{run: r, location: location, store: store}
	steps := Steps(stored, present.Items)
	if len(steps) > maxSteps { // those that come to nothing are not always the first
		rand.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
		steps = steps[:maxSteps]
	}
	for _, step := range steps {
		if err := at.take(ctx, step); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) count(add func(*Result)) {
	r.lock.Lock()
	defer r.lock.Unlock()
	add(&r.result)
}

func (r *run) report(ctx context.Context, location *Location, reason, note string) {
	activity.GetLogger(ctx).Warn(note, "location", location.Velero.Name, "targetNamespace", location.Of.Namespace)
	activities.RecordEvent(r.Events, location.Of, corev1.EventTypeWarning, reason, "SynchronizeBackups", "%s", note)
}
