package digests

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.temporal.io/sdk/worker"
	"k8s.io/client-go/util/retry"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/activities/backup"
	"holdfast.dev/holdfast/activities/stores"
	"holdfast.dev/holdfast/k8s"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/k8s/digest"
	"holdfast.dev/holdfast/k8s/objectstore"
	"holdfast.dev/holdfast/k8s/shorten"
	"holdfast.dev/holdfast/workflows/contract"
)

const (
	// window is how long after its completion digests of a backup are recorded: later ones would say too little.
	window = 24 * time.Hour
	// maxSkew is by how much the API server's clock may be ahead of Velero's. A Velero Backup that is younger than its own end was
	// made by Velero's synchronization: what it holds now says nothing about what it held then.
	maxSkew = 30 * time.Second
	// maxReads is how many archives a worker reads at a time. Each is read once, and blocks nothing.
	maxReads    = 4
	maxWhyBytes = 256
)

// Activities records digests.
type Activities struct {
	Sets
	// Backups reads through Client.
	Backups *backup.Gatherer
	// Stores are shared with the drills: their turns at archives are those of this reading, too.
	Stores *stores.Stores
	// Now returns the time, that of the machine if nil.
	Now func() time.Time

	reads atomic.Int32
}

// Register registers the activity with a worker under its wire name.
func (a *Activities) Register(registry worker.ActivityRegistry) {
	activities.RegisterGuarded(registry, a.Paused, contract.RecordDigests, a.Record)
}

// Record records digests of the objects in a complete backup, and says so on the Velero Backup. A problem that no retry solves,
// or that has lasted for a day, is written there instead. It may be repeated at any time.
func (a *Activities) Record(ctx context.Context, step contract.BackupStep) (contract.None, error) {
	defer activities.Beating(ctx)()
	o, err := a.Backups.Gather(ctx, step.Ref)
	if err != nil || o.NAB == nil || o.Backup == nil || o.DeletionRequested() || !backup.DigestsDue(o.Backup) {
		return contract.None{}, err
	}
	completed := o.Backup.Status.CompletionTimestamp
	switch {
	case completed == nil || a.now().Sub(completed.Time) > window:
		return contract.None{}, a.annotate(ctx, o.Backup, "not recorded within a day")
	case o.Backup.CreationTimestamp.After(completed.Add(maxSkew)):
		return contract.None{}, a.annotate(ctx, o.Backup, "not recorded: Velero has found the backup in the object store")
	}
	set, err := a.read(ctx, o.Backup, o.NAB.Namespace)
	var invalid *invalidArchiveError
	switch {
	case errors.As(err, &invalid):
		return contract.None{}, a.annotate(ctx, o.Backup, "not recorded: "+invalid.Error())
	case err != nil:
		return contract.None{}, err
	}
	if err := a.put(ctx, o.Backup, set); err != nil {
		return contract.None{}, err
	}
	return contract.None{}, a.annotate(ctx, o.Backup, holdfastv1alpha1.DigestsRecorded)
}

// annotate writes what has become of the digests. Somebody else may write the Velero Backup at the same time: that must not cost
// another reading of the archive.
func (a *Activities) annotate(ctx context.Context, made *velerov1.Backup, what string) error {
	return retry.OnError(activities.ConflictBackoff(), activities.Conflicts("backups"), func() error {
		present := &velerov1.Backup{}
		exists, err := k8s.Get(ctx, a.Client, "Velero Backup", made.Namespace, made.Name, present)
		if err != nil || !exists || present.UID != made.UID || !backup.DigestsDue(present) {
			return err
		}
		_, err = a.PatchObject(ctx, present, func() {
			present.Annotations[holdfastv1alpha1.AnnotationDigests] = shorten.Text(what, maxWhyBytes)
		})
		return err
	})
}

// read makes the digests of a namespace's backup.
func (a *Activities) read(ctx context.Context, made *velerov1.Backup, namespace string) (set *digest.Set, err error) {
	defer a.reads.Add(-1)
	if a.reads.Add(1) > maxReads {
		return nil, &activities.NotYetError{For: "the archives of other backups to be read"}
	}
	key, err := a.needKey(ctx)
	if err != nil {
		return nil, err
	}
	store, err := a.Stores.OpenForArchive(ctx, made, namespace)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	set = digest.NewSet(key)
	err = store.BackupArchive(ctx, made.Name,
		func(file string) bool {
			_, copied, found := digest.PlaceOf(file, namespace)
			if found && copied {
				set.Copies++
			}
			return found && !copied
		},
		func(file string, content []byte) error {
			place, _, _ := digest.PlaceOf(file, namespace)
			set.Add(place, key.Of(place, content))
			return nil
		})
	if errors.Is(err, objectstore.ErrUnusable) || errors.Is(err, objectstore.ErrNotFound) {
		return nil, &invalidArchiveError{err}
	}
	return set, err
}

// invalidArchiveError says that no retry finds an archive to read. Its text may be shown.
type invalidArchiveError struct{ error }

func (e *invalidArchiveError) Unwrap() error { return e.error }

func (a *Activities) now() time.Time {
	if a.Now != nil {
		return a.Now()
	}
	return time.Now()
}
