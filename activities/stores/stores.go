package stores

import (
	"context"
	"fmt"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/k8s/objectstore"
	"holdfast.dev/holdfast/k8s/owner"
)

// Stores opens the object stores that hold backups. A process has one.
type Stores struct {
	// Reader reads from the API server itself.
	Reader client.Reader
	// OpenLocation opens the bucket of a location, as clouds.Opener does.
	OpenLocation func(context.Context, *velerov1.BackupStorageLocation) (*objectstore.Store, error)

	// An archive may take minutes: others' files need not wait for it.
	turns, archives turns
}

// Backup reads the Velero Backup from which a restore was made.
func (s *Stores) Backup(ctx context.Context, made *velerov1.Restore) (*velerov1.Backup, error) {
	backup := &velerov1.Backup{}
	key := types.NamespacedName{Namespace: made.Namespace, Name: made.Spec.BackupName}
	return backup, s.get(ctx, key, backup, "Velero Backup")
}

// Open opens the object store that holds a backup of the namespace. It returns an *activities.NotYetError while others have their
// turns at tenants' buckets.
func (s *Stores) Open(ctx context.Context, backup *velerov1.Backup, namespace string) (*objectstore.Store, error) {
	return s.open(ctx, backup, namespace, &s.turns)
}

// OpenForArchive is Open for a caller that reads only the backup's archive. Archives have turns of their own.
func (s *Stores) OpenForArchive(ctx context.Context, backup *velerov1.Backup, namespace string) (*objectstore.Store, error) {
	return s.open(ctx, backup, namespace, &s.archives)
}

func (s *Stores) open(
	ctx context.Context, backup *velerov1.Backup, namespace string, turns *turns,
) (*objectstore.Store, error) {
	location := &velerov1.BackupStorageLocation{}
	key := types.NamespacedName{Namespace: backup.Namespace, Name: backup.Spec.StorageLocation}
	if err := s.get(ctx, key, location, "BackupStorageLocation"); err != nil {
		return nil, err
	}
	if !owner.Tenants(location) {
		return s.OpenLocation(ctx, location)
	}
	giveBack, ok := turns.take(namespace)
	if !ok {
		return nil, &activities.NotYetError{For: "others to have read their files"}
	}
	store, err := s.OpenLocation(ctx, location)
	if err != nil {
		giveBack()
		return nil, err
	}
	store.OnClose(giveBack)
	return store, nil
}

func (s *Stores) get(ctx context.Context, key types.NamespacedName, object client.Object, kind string) error {
	err := s.Reader.Get(ctx, key, object)
	if apierrors.IsNotFound(err) {
		return objectstore.Unusable("open the object store", fmt.Sprintf("there is no %s %s", kind, key.Name))
	}
	if err != nil {
		return fmt.Errorf("get %s %s: %w", kind, key, err)
	}
	return nil
}
