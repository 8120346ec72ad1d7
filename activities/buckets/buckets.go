package buckets

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
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
	runLimit       = 8 * time.Minute
	namespaceLimit = 4 * time.Minute
	atOnce         = 8
	maxSteps       = 200
	// maxBackups limits what a bucket brings into the cluster: more than Velero's own Backups of a namespace should be.
	maxBackups = 1000
	// retryAfter is how long a location waits that could not be read.
	retryAfter = time.Minute
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
	// Period is the time between two synchronizations. With 0 the bucket brings no Backups, and those that exist are inspected.
	Period time.Duration
}

// due: Velero reaches the location, and its period has passed.
func (l *Location) due(now time.Time) bool {
	synced := l.Velero.Status.LastSyncedTime
	return l.Of != nil && l.Velero.Status.Phase == velerov1.BackupStorageLocationPhaseAvailable &&
		(synced == nil || !now.Before(synced.Add(l.Period)))
}

// Buckets synchronizes Backups with tenants' buckets. All activities of a process share one.
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

	known memory
}

// Result counts what a run has done.
type Result struct {
	// Brought counts Velero Backups created for what was found, Removed those deleted since their files are gone.
	Brought, Removed int
	// Withheld are backups that Velero does not get to see, since their files are not within the limits.
	Withheld []string
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
}

// Synchronize goes through the locations that are due, one of each namespace at a time. maxArchive is how large an archive may
// be, unpacked, in bytes. Errors are the API server's; a store's is the tenant's to see.
func (b *Buckets) Synchronize(ctx context.Context, locations []Location, maxArchive int64) (Result, error) {
	defer activities.Beating(ctx)()
	r := &run{Buckets: b, maxArchive: maxArchive}
	byNamespace, namespaces := map[string][]*Location{}, []string{}
	for i := range locations {
		location := &locations[i]
		if err := b.endVeleroSync(ctx, location.Velero); err != nil {
			return r.result, err
		}
		if !location.due(time.Now()) || b.known.failedWithin(location.Velero.Name, retryAfter) {
			continue
		}
		if byNamespace[location.Of.Namespace] == nil {
			namespaces = append(namespaces, location.Of.Namespace)
		}
		byNamespace[location.Of.Namespace] = append(byNamespace[location.Of.Namespace], location)
	}
	limited, cancel := context.WithTimeout(ctx, runLimit)
	defer cancel()
	var group errgroup.Group
	group.SetLimit(atOnce)
	rand.Shuffle(len(namespaces), func(i, j int) { namespaces[i], namespaces[j] = namespaces[j], namespaces[i] })
	for _, namespace := range namespaces {
		group.Go(func() error { return r.synchronizeAll(ctx, limited, byNamespace[namespace]) })
	}
	err := group.Wait()
	return r.result, err
}

// synchronizeAll goes through the locations of a namespace, one after the other. When limited has ended, the run's time is over.
func (r *run) synchronizeAll(ctx, limited context.Context, locations []*Location) error {
	if limited.Err() != nil {
		return ctx.Err()
	}
	own, cancel := context.WithTimeout(limited, namespaceLimit)
	defer cancel()
	for _, location := range locations {
		err := r.synchronize(own, location)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case own.Err() != nil:
			r.failed(ctx, location, &objectstore.Error{
				Action: "read BackupStorageLocation " + location.Velero.Name, Reason: "the object store did not answer in time",
			})
			return nil
		case err != nil:
			return err
		}
	}
	return nil
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

// synchronize goes through one location, and notes when it has gone through all of it.
func (r *run) synchronize(ctx context.Context, location *Location) error {
	began, all := metav1.Now(), false
	err := survive(ctx, location.Velero.Name, func() (err error) {
		all, err = r.goThrough(ctx, location)
		return err
	})
	var problem *objectstore.Error
	switch {
	case errors.As(err, &problem) && ctx.Err() == nil:
		r.failed(ctx, location, problem)
		return nil
	case err != nil || !all:
		return err
	}
	before := location.Velero.DeepCopy()
	location.Velero.Status.LastSyncedTime = &began
	return r.patchLocation(ctx, location.Velero, before)
}

// survive returns an error for a panic: the clouds' drivers do not bear every answer, and a store may be the tenant's program.
func survive(ctx context.Context, location string, do func() error) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			activity.GetLogger(ctx).Error("panic over a tenant's bucket", "location", location, "reason", reason,
				"stack", string(debug.Stack()))
			err = objectstore.Unusable("read BackupStorageLocation "+location, "the object store's answer cannot be read")
		}
	}()
	return do()
}

// goThrough takes the steps that are due for a location; it is false unless the bucket has been gone through. The Backups are
// listed before the bucket: of one that ends in between the files are there.
func (r *run) goThrough(ctx context.Context, location *Location) (all bool, err error) {
	var present velerov1.BackupList
	if err := r.Client.List(ctx, &present, client.InNamespace(r.OADPNamespace),
		client.MatchingLabels{velerov1.StorageLocationLabel: location.Velero.Name}); err != nil {
		return false, fmt.Errorf("list the Backups in storage location %s: %w", location.Velero.Name, err)
	}
	store, err := r.OpenLocation(ctx, location.Velero)
	if err != nil {
		return false, err
	}
	defer store.Close()
	stored, err := store.Backups(ctx)
	if err != nil {
		return false, err
	}
	at := &visit{run: r, location: location, store: store, room: maxBackups - len(present.Items)}
	steps := Steps(stored, present.Items)
	if location.Period <= 0 {
		steps = slices.DeleteFunc(steps, func(step Step) bool { return step.Action != Inspect })
	}
	for _, step := range InOrder(steps, rand.Shuffle)[:min(len(steps), maxSteps)] {
		if err := at.take(ctx, step); err != nil {
			return false, err
		}
	}
	return len(steps) <= maxSteps && location.Period > 0, nil
}

func (r *run) count(add func(*Result)) {
	r.lock.Lock()
	defer r.lock.Unlock()
	add(&r.result)
}

func (r *run) failed(ctx context.Context, location *Location, problem *objectstore.Error) {
	r.known.fail(location.Velero.Name)
	r.count(func(result *Result) { result.Failed++ })
	r.report(ctx, location, eventUnsynchronized, "The backups in the bucket are not synchronized: "+problem.Error())
}

func (r *run) report(ctx context.Context, location *Location, reason, note string) {
	activity.GetLogger(ctx).Warn(note, "location", location.Velero.Name, "targetNamespace", location.Of.Namespace)
	activities.RecordEvent(r.Events, location.Of, corev1.EventTypeWarning, reason, "SynchronizeBackups", "%s", note)
}
