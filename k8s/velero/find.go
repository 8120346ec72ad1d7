package velero

import (
	"context"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
)

// Finder finds the Velero object that was made for a tenant's object.
type Finder struct {
	Reader        client.Reader
	ClusterID     string
	OADPNamespace string
}

// Found is the one Velero Backup or Restore that may belong to a tenant's object.
type Found[T any] struct {
	// Name is its name, whether it exists or not.
	Name string
	// Made is nil when it is absent, and when it is not the tenant's object's.
	Made *T
	// Foreign: one of that name exists and belongs to something else.
	Foreign bool
}

// OwnName is the name of the Velero object that Holdfast makes for a tenant's object.
func (f Finder) OwnName(object metav1.Object) string {
	return owner.NACUUID(f.ClusterID, object.GetNamespace(), object.GetName(), string(object.GetUID()))
}

// Backup decides which Velero Backup may belong to the NAB. A name in the status or the label may be forged: it counts only
// if the Velero Backup of that name names this NAB as its origin, and no other tenant can have written that.
func (f Finder) Backup(ctx context.Context, nab *oadpv1alpha1.NonAdminBackup) (Found[velerov1.Backup], error) {
	own, synced := f.OwnName(nab), owner.SyncedFrom(nab)
	if recorded := owner.Claimed(nab); recorded != "" && recorded != own {
		found, err := f.backup(ctx, nab, recorded)
		if err != nil || found.Made != nil || recorded == synced {
			return found, err
		}
	}
	if synced != "" && !owner.Claims(nab, own) {
		own = synced
	}
	return f.backup(ctx, nab, own)
}

// Restore decides which Velero Restore may belong to the NAR. A name in its status may be forged: it counts only if the
// Velero Restore of that name names this NAR as its origin.
func (f Finder) Restore(ctx context.Context, nar *oadpv1alpha1.NonAdminRestore) (Found[velerov1.Restore], error) {
	own := f.OwnName(nar)
	if recorded := owner.Claimed(nar); recorded != "" && recorded != own {
		if found, err := f.restore(ctx, nar, recorded); err != nil || found.Made != nil {
			return found, err
		}
	}
	return f.restore(ctx, nar, own)
}

// Made is the Velero object that belongs to a NonAdminBackup or NonAdminRestore; nil if there is none.
func (f Finder) Made(ctx context.Context, object client.Object) (client.Object, error) {
	if nar, is := object.(*oadpv1alpha1.NonAdminRestore); is {
		if found, err := f.Restore(ctx, nar); err != nil || found.Made != nil {
			return found.Made, err
		}
		return nil, nil //nolint:nilnil // not existing is no error
	}
	if found, err := f.Backup(ctx, object.(*oadpv1alpha1.NonAdminBackup)); err != nil || found.Made != nil {
		return found.Made, err
	}
	return nil, nil //nolint:nilnil // the same
}

func (f Finder) restore(ctx context.Context, nar *oadpv1alpha1.NonAdminRestore, name string) (Found[velerov1.Restore], error) {
	made := &velerov1.Restore{}
	exists, err := k8s.Get(ctx, f.Reader, "Velero Restore", f.OADPNamespace, name, made)
	return found(name, made, exists, owner.Restore.Names(made, nar.Namespace, nar.Name)), err
}

func (f Finder) backup(ctx context.Context, nab *oadpv1alpha1.NonAdminBackup, name string) (Found[velerov1.Backup], error) {
	made := &velerov1.Backup{}
	exists, err := k8s.Get(ctx, f.Reader, "Velero Backup", f.OADPNamespace, name, made)
	if err != nil || !exists {
		return Found[velerov1.Backup]{Name: name}, err
	}
	belongs, err := f.belongs(ctx, made, nab)
	return found(name, made, true, belongs), err
}

func found[T any](name string, made *T, exists, belongs bool) Found[T] {
	if !exists || !belongs {
		return Found[T]{Name: name, Foreign: exists}
	}
	return Found[T]{Name: name, Made: made}
}

// belongs reports whether a Velero Backup is the object's: it names the object as its origin, and is not in a bucket in which
// another tenant can write. If the location is gone, its name still says whose it was.
func (f Finder) belongs(ctx context.Context, found *velerov1.Backup, nab *oadpv1alpha1.NonAdminBackup) (bool, error) {
	if !owner.Backup.Names(found, nab.Namespace, nab.Name) {
		return false, nil
	}
	name := found.Spec.StorageLocation // Velero sets it to the location in which it has found the Backup
	if !owner.MayBeTenants(name) {
		return true, nil
	}
	location := &velerov1.BackupStorageLocation{}
	exists, err := k8s.Get(ctx, f.Reader, "Velero BackupStorageLocation", f.OADPNamespace, name, location)
	if err != nil {
		return false, err
	}
	if !exists {
		return owner.MayBeOf(name, nab.Namespace), nil
	}
	return owner.MayHold(location, nab.Namespace), nil
}
