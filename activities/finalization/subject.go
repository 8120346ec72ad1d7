package finalization

import (
	"context"
	"errors"
	"fmt"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/objectstore"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/velero"
	"holdfast.dev/holdfast/workflows/contract"
)

// Finder reads the objects of a finalization.
type Finder struct {
	// Reader reads from the API server itself.
	Reader        client.Reader
	ClusterID     string
	OADPNamespace string
	// OpenLocation opens the bucket of a location, as clouds.Opener does.
	OpenLocation func(context.Context, *velerov1.BackupStorageLocation) (*objectstore.Store, error)
	// Turns are shared by the whole process.
	Turns Turns
}

// Subject is a tenant's object with the Velero Restore that was made for it.
type Subject struct {
	// NAR is nil if no object of that UID exists.
	NAR *oadpv1alpha1.NonAdminRestore
	// Restore is nil if it does not exist, or belongs to another object.
	Restore *velerov1.Restore
}

// Stays reports whether the tenant's object exists and is not being deleted.
func (s *Subject) Stays() bool { return s.NAR != nil && s.NAR.DeletionTimestamp.IsZero() }

// Due reports whether Velero has restored what it could, so that the finalization may start. Until then Velero writes the
// results.
func (s *Subject) Due() bool {
	return s.Stays() && s.Restore != nil && velero.Usable(s.Restore.Status.Phase)
}

// Find reads the tenant's object and its Velero Restore.
func (f *Finder) Find(ctx context.Context, ref contract.ObjectRef) (*Subject, error) {
	nar := &oadpv1alpha1.NonAdminRestore{}
	err := f.Reader.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, nar)
	if apierrors.IsNotFound(err) || (err == nil && string(nar.UID) != ref.UID) {
		return &Subject{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get NonAdminRestore %s: %w", ref, err)
	}
	finder := velero.Finder{Reader: f.Reader, ClusterID: f.ClusterID, OADPNamespace: f.OADPNamespace}
	found, err := finder.Restore(ctx, nar)
	return &Subject{NAR: nar, Restore: found.Made}, err
}

// Store opens the object store that holds the backup from which a restore into the namespace was made. It returns a
// *NotYetError while others have their turns at tenants' buckets.
func (f *Finder) Store(ctx context.Context, made *velerov1.Restore, namespace string) (*objectstore.Store, error) {
	backup, err := f.Backup(ctx, made)
	if err != nil {
		return nil, err
	}
	return f.StoreOf(ctx, backup, namespace)
}

// Backup reads the Velero Backup from which a restore was made.
func (f *Finder) Backup(ctx context.Context, made *velerov1.Restore) (*velerov1.Backup, error) {
	backup := &velerov1.Backup{}
	key := types.NamespacedName{Namespace: made.Namespace, Name: made.Spec.BackupName}
	return backup, f.get(ctx, key, backup, "Velero Backup")
}

// StoreOf is Store for a backup of the namespace.
func (f *Finder) StoreOf(ctx context.Context, backup *velerov1.Backup, namespace string) (*objectstore.Store, error) {
	location := &velerov1.BackupStorageLocation{}
	key := types.NamespacedName{Namespace: backup.Namespace, Name: backup.Spec.StorageLocation}
	if err := f.get(ctx, key, location, "BackupStorageLocation"); err != nil {
		return nil, err
	}
	if !owner.Tenants(location) {
		return f.OpenLocation(ctx, location)
	}
	giveBack, ok := f.Turns.take(namespace)
	if !ok {
		return nil, &NotYetError{For: "others to have read their files"}
	}
	store, err := f.OpenLocation(ctx, location)
	if err != nil {
		giveBack()
		return nil, err
	}
	store.OnClose(giveBack)
	return store, nil
}

func (f *Finder) get(ctx context.Context, key types.NamespacedName, object client.Object, kind string) error {
	err := f.Reader.Get(ctx, key, object)
	if apierrors.IsNotFound(err) {
		return objectstore.Unusable("open the object store", fmt.Sprintf("there is no %s %s", kind, key.Name))
	}
	if err != nil {
		return fmt.Errorf("get %s %s: %w", kind, key, err)
	}
	return nil
}

var errUnknownTask = errors.New("unknown task")

// TaskNamed returns the task of that name.
func TaskNamed(name string) (Task, error) {
	for _, task := range Tasks() {
		if task.Name() == name {
			return task, nil
		}
	}
	return nil, fmt.Errorf("%w %q", errUnknownTask, name)
}
