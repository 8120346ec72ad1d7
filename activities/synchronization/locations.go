package synchronization

import (
	"context"
	"fmt"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/activities/buckets"
	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/k8s/policy/locationspec"
)

// Location is a Velero BackupStorageLocation, as far as it matters for the Backups in it.
type Location struct {
	Name string
	// Tenants: a tenant writes into its bucket. Owner and NaBSL are its NonAdminBackupStorageLocation; empty if that is gone,
	// or not proven to be the one for which the location was made.
	Tenants      bool
	Owner, NaBSL string
	Available    bool
	// Listed: its bucket has been listed since its creation, or never will be.
	Listed   bool
	ListedAt time.Time

	bucket buckets.Location
}

// Holds reports whether a Backup in the location may belong to an object of the namespace.
func (l *Location) Holds(namespace string) bool {
	return !l.Tenants || (l.Owner != "" && l.Owner == namespace)
}

// Locations reads the Velero BackupStorageLocations and their owners, live.
func Locations(
	ctx context.Context, reader client.Reader, oadpNamespace string, rules policy.Policy,
) (map[string]*Location, error) {
	var list velerov1.BackupStorageLocationList
	if err := reader.List(ctx, &list, client.InNamespace(oadpNamespace)); err != nil {
		return nil, fmt.Errorf("list BackupStorageLocations: %w", err)
	}
	locations := map[string]*Location{}
	for i := range list.Items {
		made := &list.Items[i]
		var tenants *oadpv1alpha1.NonAdminBackupStorageLocation
		if key, found := owner.Location.Hint(made); found {
			object := &oadpv1alpha1.NonAdminBackupStorageLocation{}
			exists, err := k8s.Get(ctx, reader, oadpv1alpha1.KindNonAdminBackupStorageLocation, key.Namespace, key.Name, object)
			if err != nil {
				return nil, err
			}
			if exists {
				tenants = object
			}
		}
		locations[made.Name] = locationOf(made, tenants, rules)
	}
	return locations, nil
}

// locationOf judges a location by the object that it names as its origin, nil if that does not exist.
func locationOf(
	made *velerov1.BackupStorageLocation, tenants *oadpv1alpha1.NonAdminBackupStorageLocation, rules policy.Policy,
) *Location {
	l := &Location{
		Name: made.Name, Tenants: owner.Tenants(made),
		Available: made.Status.Phase == velerov1.BackupStorageLocationPhaseAvailable,
	}
	if synced := made.Status.LastSyncedTime; synced != nil {
		l.ListedAt = synced.Time
	}
	l.bucket.Velero = made
	if tenants != nil && tenants.DeletionTimestamp.IsZero() && owner.Location.MadeFor(made, tenants) {
		l.Owner, l.NaBSL, l.bucket.Of = tenants.Namespace, tenants.Name, tenants
	}
	never := made.Spec.BackupSyncPeriod != nil && made.Spec.BackupSyncPeriod.Duration <= 0
	if spec := specOf(l.bucket.Of); spec != nil && !rules.TenantsBuckets.VeleroSynchronizes {
		l.bucket.Period = locationspec.SyncPeriod(spec, rules)
		never = l.bucket.Period <= 0
	}
	l.Listed = never || made.Status.Phase == velerov1.BackupStorageLocationPhaseUnavailable ||
		(l.Available && !l.ListedAt.IsZero() && !l.ListedAt.Before(made.CreationTimestamp.Time))
	return l
}

func specOf(tenants *oadpv1alpha1.NonAdminBackupStorageLocation) *velerov1.BackupStorageLocationSpec {
	if tenants == nil {
		return nil
	}
	return tenants.Spec.BackupStorageLocationSpec
}

// bucketsOf returns the tenants' locations.
func bucketsOf(locations map[string]*Location) []buckets.Location {
	var tenants []buckets.Location
	for _, l := range locations {
		if l.Tenants {
			tenants = append(tenants, l.bucket)
		}
	}
	return tenants
}

// Waiting names an administrator's location that Velero has not listed yet; empty if there is none. Without an available one
// nothing is known of the stores. Nothing waits for a tenant's location, since its store may never answer: see HeldBack.
func Waiting(locations map[string]*Location) string {
	waiting, available, admins := "", false, false
	for _, l := range locations {
		admins = admins || !l.Tenants
	}
	for name, l := range locations {
		if admins && l.Tenants {
			continue
		}
		available = available || l.Available
		if !l.Tenants && !l.Listed && (waiting == "" || name < waiting) {
			waiting = name
		}
	}
	if waiting == "" && !available {
		return "any storage location"
	}
	return waiting
}

// HeldBack are the namespaces with a storage location of their own whose bucket has not been listed yet: their NonAdminBackups
// may still be created.
func HeldBack(locations map[string]*Location) map[string]bool {
	namespaces := map[string]bool{}
	for _, l := range locations {
		if l.Tenants && l.Owner != "" && !l.Listed {
			namespaces[l.Owner] = true
		}
	}
	return namespaces
}

// LocationsOf reads the storage locations, which is slow if many tenants have their own.
func LocationsOf(
	ctx context.Context, reader client.Reader, oadpNamespace string, rules policy.Policy,
) (map[string]*Location, error) {
	defer activities.Beating(ctx)()
	return Locations(ctx, reader, oadpNamespace, rules)
}
