package buckets

import (
	"context"
	"errors"
	"fmt"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.temporal.io/sdk/activity"

	"holdfast.dev/holdfast/k8s"
	"holdfast.dev/holdfast/k8s/metrics"
	"holdfast.dev/holdfast/k8s/objectstore"
	"holdfast.dev/holdfast/k8s/owner"
)

// Admit reads the files of a Backup before Velero restores or deletes it, if they have changed since they were read. One whose
// files are too large is taken out of the cluster: the next attempt of the caller finds no Backup. An error says that a later
// attempt may succeed: as long as the files cannot be read, Velero is not sent there either.
func (b *Buckets) Admit(ctx context.Context, made *velerov1.Backup) error {
	return b.admitBefore(ctx, made, false)
}

// AdmitDeletion is Admit before Velero deletes: it refuses that by itself, and says so, while a location is not Available.
func (b *Buckets) AdmitDeletion(ctx context.Context, made *velerov1.Backup) error {
	return b.admitBefore(ctx, made, true)
}

func (b *Buckets) admitBefore(ctx context.Context, made *velerov1.Backup, deletion bool) error {
	if !owner.MayBeTenants(made.Spec.StorageLocation) {
		return nil
	}
	rules, err := b.Policy.Get(ctx)
	if err != nil {
		return fmt.Errorf("read the admin's policy: %w", err)
	}
	if rules.TenantsBuckets.VeleroSynchronizes {
		return nil
	}
	location := &velerov1.BackupStorageLocation{}
	exists, err := k8s.Get(ctx, b.Client, "BackupStorageLocation", b.OADPNamespace, made.Spec.StorageLocation, location)
	if err != nil || !exists || !owner.Tenants(location) ||
		(deletion && location.Status.Phase != velerov1.BackupStorageLocationPhaseAvailable) {
		return err
	}
	err = survive(ctx, location.Name, func() error { return b.admit(ctx, rules.TenantsBuckets.MaxArchive(), made, location) })
	if err != nil {
		return fmt.Errorf("the files of Velero Backup %s are read before Velero reads them: %w", made.Name, err)
	}
	return nil
}

func (b *Buckets) admit(
	ctx context.Context, maxArchive int64, made *velerov1.Backup, location *velerov1.BackupStorageLocation,
) error {
	store, err := b.OpenLocation(ctx, location)
	if errors.Is(err, objectstore.ErrUnusable) { // another provider, or keys that only Velero has
		activity.GetLogger(ctx).Warn("Velero reads a tenant's bucket that Holdfast cannot open", "backup", made.Name, "error", err)
		return nil
	}
	if err != nil {
		return err
	}
	defer store.Close()
	files, err := store.BackupFiles(ctx, made.Name)
	if err != nil || made.Annotations[FilesAnnotation] == Fingerprint(files) {
		return err
	}
	if Pending(made) {
		return errors.New("its volumes are not known yet: the next synchronization brings them")
	}
	switch err := store.Inspect(ctx, made.Name, files, maxArchive); {
	case errors.Is(err, objectstore.ErrUnusable):
		metrics.BackupWithheld()
		return errors.Join(err, b.remove(ctx, made))
	case err != nil:
		return err
	}
	return b.note(ctx, made, files)
}
