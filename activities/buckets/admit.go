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
	"holdfast.dev/holdfast/k8s/policy"
)

// Admit reads the files of a Backup before Velero restores or deletes it, if they have changed since they were read. One whose
// files are too large is taken out of the cluster: the next attempt of the caller finds no Backup. While a store cannot be read,
// nothing is decided here: neither can Velero read it. An error says that a later attempt may succeed.
func (b *Buckets) Admit(ctx context.Context, made *velerov1.Backup) error {
	if !owner.MayBeTenants(made.Spec.StorageLocation) {
		return nil
	}
	rules, err := b.Policy.Get(ctx)
	if err != nil {
		return fmt.Errorf("read the admin's policy: %w", err)
	}
	if rules.TenantsBuckets.VeleroSynchronizes || rules.BackupSync() <= 0 {
		return nil
	}
	location := &velerov1.BackupStorageLocation{}
	exists, err := k8s.Get(ctx, b.Client, "BackupStorageLocation", b.OADPNamespace, made.Spec.StorageLocation, location)
	if err != nil || !exists || !owner.Tenants(location) || location.Status.Phase != velerov1.BackupStorageLocationPhaseAvailable {
		return err
	}
	err = b.admit(ctx, rules, made, location)
	var problem *objectstore.Error
	switch {
	case !errors.As(err, &problem):
		return err
	case ctx.Err() != nil:
		return fmt.Errorf("the files of Velero Backup %s are being read before Velero reads them: %w", made.Name, err)
	}
	activity.GetLogger(ctx).Warn("cannot read a tenant's bucket", "backup", made.Name, "error", err)
	return nil
}

func (b *Buckets) admit(
	ctx context.Context, rules policy.Policy, made *velerov1.Backup, location *velerov1.BackupStorageLocation,
) error {
	store, err := b.OpenLocation(ctx, location)
	if err != nil {
		return err
	}
	defer store.Close()
	files, err := store.BackupFiles(ctx, made.Name)
	if err != nil || made.Annotations[FilesAnnotation] == Fingerprint(made.Name, files) {
		return err
	}
	if Pending(made) {
		return fmt.Errorf("the volumes of Velero Backup %s are not known yet: the next synchronization brings them", made.Name)
	}
	switch err := store.Inspect(ctx, made.Name, files, rules.TenantsBuckets.MaxArchive()); {
	case errors.Is(err, objectstore.ErrUnusable):
		metrics.BackupWithheld()
		// Not %w: a problem of the store's would be no reason to wait.
		return errors.Join(fmt.Errorf("backup %s is kept from Velero: %s", made.Name, err.Error()), b.remove(ctx, made))
	case err != nil:
		return err
	}
	return b.note(ctx, made, files)
}
