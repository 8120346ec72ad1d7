package backup

import (
	"context"
	"fmt"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"holdfast.dev/holdfast/k8s"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/lifecycle"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/k8s/policy/quota"
	"holdfast.dev/holdfast/k8s/velero"
	"holdfast.dev/holdfast/workflows/contract"
)

// Gatherer reads one NonAdminBackup and all that belongs to it. Reader is the API server in the worker, the cache in the
// watcher.
type Gatherer struct {
	Reader        client.Reader
	Policy        policy.Getter
	ClusterID     string
	OADPNamespace string
	// Cached: Reader is the watcher's cache, which has no pages and not the size of volumes. Quotas are judged without their
	// maxBytes.
	Cached bool
}

// Objects is one NonAdminBackup and what belongs to it, as read. The objects are the reader's own: copy before changing.
type Objects struct {
	// NAB is nil if no object of the requested UID exists.
	NAB *oadpv1alpha1.NonAdminBackup
	// BackupName is the name of the one Velero Backup that may belong to NAB, whether it exists or not.
	BackupName string
	// Backup is that Velero Backup; nil when absent, and nil when it does not name NAB as its origin or lies in another tenant's
	// location.
	Backup *velerov1.Backup
	// Foreign: a Velero Backup of the name BackupName exists and belongs to something else.
	Foreign bool
	// SyncedFrom is the value of the label that connects a NAB with a Backup made before this cluster knew it; empty if there
	// is none.
	SyncedFrom string
	// DeleteRequests are the requests to delete BackupName; read only when a deletion is requested.
	DeleteRequests []velerov1.DeleteBackupRequest
	// NamespaceTerminating is read only when NAB is being deleted.
	NamespaceTerminating bool
	// LocationGone: the tenant's location that holds Backup is gone for good; read only after a plain delete of NAB.
	LocationGone bool
	// Verdict on the present spec; read only in phase BackingOff.
	Verdict *check.Verdict
	// Rules are the policy by which the spec was judged; nil if it was not judged since the objects were read. StorageLocation
	// is the Velero BackupStorageLocation for the judged spec, or "" for the administrator's default.
	Rules           *policy.Policy
	StorageLocation string
	// QuotaPasses is when time alone gives the object the place that a quota refuses; zero if that is not known.
	QuotaPasses time.Time

	// drill has a verdict on the backup that the status does not show yet; nil if none has, or none was read.
	drill *holdfastv1alpha1.RestoreDrill
	// limits are those by which a place was found; nil if none was needed.
	limits *quota.Limits
	// held is what the volumes of the namespace hold; nil if that was not read.
	held *int64
	// unread: nothing shows that there ever was a Velero Backup, so it was not read.
	unread bool
	// turnUsed: the Velero Backup was made with a turn since the objects were read.
	turnUsed bool
}

// DeletionRequested reports whether the object is being deleted, or is to be, in any of the ways: its spec does not matter any
// more.
func (o *Objects) DeletionRequested() bool { return lifecycle.DeletionRequested(o.NAB) }

// waits: the status says that the object waits for its turn before Velero.
func (o *Objects) waits() bool {
	return o.Backup == nil && !lifecycle.EverCreated(o.NAB) && k8s.WaitsForTurn(o.NAB.Status.Conditions)
}

// untouched: no workflow has served the object yet.
func (o *Objects) untouched() bool {
	return o.NAB.Status.Phase == "" && o.NAB.Status.VeleroBackup == nil && owner.SyncedFrom(o.NAB) == "" &&
		!controllerutil.ContainsFinalizer(o.NAB, oadpv1alpha1.NabFinalizer) && !o.DeletionRequested()
}

func (g *Gatherer) finder() velero.Finder {
	return velero.Finder{Reader: g.Reader, ClusterID: g.ClusterID, OADPNamespace: g.OADPNamespace}
}

// Gather reads the objects. An error means that one could not be read, never that something is absent or invalid.
func (g *Gatherer) Gather(ctx context.Context, ref contract.ObjectRef) (*Objects, error) {
	objects := &Objects{}
	if err := g.readObject(ctx, ref, objects); err != nil || objects.NAB == nil {
		return objects, err
	}
	nab := objects.NAB
	if objects.untouched() {
		// Our finalizer comes before the Velero Backup. If there is one nevertheless, its creation reports that.
		objects.BackupName, objects.unread = g.finder().OwnName(nab), true
		return objects, nil
	}
	if err := g.findBackup(ctx, objects); err != nil {
		return nil, err
	}
	if err := g.readDeletion(ctx, objects); err != nil {
		return nil, err
	}
	if nab.Spec.DeleteBackup || nab.Spec.ForceDeleteBackup {
		var err error
		if objects.DeleteRequests, err = g.deleteRequests(ctx, objects.BackupName); err != nil {
			return nil, err
		}
	}
	if nab.Status.Phase == oadpv1alpha1.NonAdminPhaseBackingOff && !objects.DeletionRequested() {
		verdict, err := g.Judge(ctx, objects)
		if err != nil {
			return nil, err
		}
		objects.Verdict = &verdict
	}
	return objects, nil
}

// readObject reads the NAB; o.NAB is nil if no object of that UID exists.
func (g *Gatherer) readObject(ctx context.Context, ref contract.ObjectRef, o *Objects) error {
	nab := &oadpv1alpha1.NonAdminBackup{}
	err := g.Reader.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, nab)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("get NonAdminBackup %s: %w", ref, err)
	}
	o.NAB = nil
	if err == nil && string(nab.UID) == ref.UID {
		o.NAB = nab
	}
	return nil
}

// readDeletion reads what matters only for a NAB that is being deleted.
func (g *Gatherer) readDeletion(ctx context.Context, o *Objects) (err error) {
	if o.NAB.DeletionTimestamp.IsZero() {
		return nil
	}
	if o.NamespaceTerminating, err = k8s.NamespaceTerminating(ctx, g.Reader, o.NAB.Namespace); err != nil {
		return err
	}
	o.LocationGone, err = g.locationGone(ctx, o)
	return err
}

// findBackup finds the Velero Backup that belongs to the NAB.
func (g *Gatherer) findBackup(ctx context.Context, o *Objects) error {
	found, err := g.finder().Backup(ctx, o.NAB)
	o.unread, o.SyncedFrom = false, owner.SyncedFrom(o.NAB)
	o.BackupName, o.Backup, o.Foreign = found.Name, found.Made, found.Foreign
	return err
}

// locationGone: the backup is in a location that its tenant has deleted, so a plain delete has nothing to protect. A
// BackupStorageLocation that is missing for another reason (a revocation, an administrator) may be restored.
func (g *Gatherer) locationGone(ctx context.Context, o *Objects) (bool, error) {
	spec := o.NAB.Spec
	if o.Backup == nil || o.Backup.Spec.StorageLocation == "" || spec.DeleteBackup || spec.ForceDeleteBackup ||
		spec.BackupSpec == nil || spec.BackupSpec.StorageLocation == "" {
		return false, nil
	}
	made := &velerov1.BackupStorageLocation{}
	exists, err := k8s.Get(ctx, g.Reader, "Velero BackupStorageLocation", g.OADPNamespace, o.Backup.Spec.StorageLocation, made)
	if exists || err != nil {
		return false, err
	}
	location := &oadpv1alpha1.NonAdminBackupStorageLocation{}
	kind := oadpv1alpha1.KindNonAdminBackupStorageLocation
	exists, err = k8s.Get(ctx, g.Reader, kind, o.NAB.Namespace, spec.BackupSpec.StorageLocation, location)
	if err != nil {
		return false, err
	}
	return !exists || !location.DeletionTimestamp.IsZero() || !g.madeFor(o.Backup.Spec.StorageLocation, location), nil
}

// madeFor: the BackupStorageLocation of the location has, or will have, that name.
func (g *Gatherer) madeFor(name string, location *oadpv1alpha1.NonAdminBackupStorageLocation) bool {
	return owner.Claims(location, name) || owner.Derived(name, g.ClusterID, location)
}

func (g *Gatherer) deleteRequests(ctx context.Context, backupName string) ([]velerov1.DeleteBackupRequest, error) {
	list := &velerov1.DeleteBackupRequestList{}
	if err := g.Reader.List(ctx, list, client.InNamespace(g.OADPNamespace),
		client.MatchingLabels{velerov1.BackupNameLabel: backupName}); err != nil {
		return nil, fmt.Errorf("list DeleteBackupRequests of Velero Backup %s/%s: %w", g.OADPNamespace, backupName, err)
	}
	return list.Items, nil
}
