package finalize

import (
	"context"
	"errors"
	"fmt"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/objectstore"
	"holdfast.dev/holdfast/workflows/contract"
)

// Finder reads what a finalization is about.
type Finder struct {
	// Reader reads at the API server itself.
	Reader        client.Reader
	ClusterID     string
	OADPNamespace string
	// OpenLocation opens the bucket of a location, as objectstore.Opener does.
	OpenLocation func(context.Context, *velerov1.BackupStorageLocation) (*objectstore.Store, error)
}

// Subject is a tenant's object with the Velero Restore that was made for it.
type Subject struct {
	// NAR is nil if no object of that UID exists.
	NAR *oadpv1alpha1.NonAdminRestore
	// Restore is nil if it does not exist, or is somebody else's.
	Restore *velerov1.Restore
}

// Stays reports whether the tenant's object exists and is not about to go.
func (s *Subject) Stays() bool { return s.NAR != nil && s.NAR.DeletionTimestamp.IsZero() }

// Due reports whether Velero has restored what it could, so that the rest is ours. Until then Velero writes the results.
func (s *Subject) Due() bool {
	if !s.Stays() || s.Restore == nil {
		return false
	}
	phase := s.Restore.Status.Phase
	return phase == velerov1.RestorePhaseCompleted || phase == velerov1.RestorePhasePartiallyFailed
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
	subject := &Subject{NAR: nar}
	names := []string{k8s.NACUUID(f.ClusterID, nar.Namespace, nar.Name, string(nar.UID))}
	if made := nar.Status.VeleroRestore; made != nil && made.Name != "" && made.Name != names[0] {
		names = append(names, made.Name) // made by another release or by the Non-Admin Controller, if its annotations say so
	}
	for _, name := range names {
		restore := &velerov1.Restore{}
		err := f.Reader.Get(ctx, types.NamespacedName{Namespace: f.OADPNamespace, Name: name}, restore)
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsBadRequest(err) {
			return nil, fmt.Errorf("get Velero Restore %s/%s: %w", f.OADPNamespace, name, err)
		}
		if err == nil && k8s.RestoreOrigin.Is(restore, nar.Namespace, nar.Name) {
			subject.Restore = restore
			return subject, nil
		}
	}
	return subject, nil
}

// Store opens the object store that holds the backup that a restore was made from.
func (f *Finder) Store(ctx context.Context, restore *velerov1.Restore) (*objectstore.Store, error) {
	backup := &velerov1.Backup{}
	key := types.NamespacedName{Namespace: restore.Namespace, Name: restore.Spec.BackupName}
	if err := f.get(ctx, key, backup, "Velero Backup"); err != nil {
		return nil, err
	}
	location := &velerov1.BackupStorageLocation{}
	key.Name = backup.Spec.StorageLocation
	if err := f.get(ctx, key, location, "BackupStorageLocation"); err != nil {
		return nil, err
	}
	return f.OpenLocation(ctx, location)
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
