package synchronization

import (
	"context"
	"fmt"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
)

// Location is what a Velero BackupStorageLocation says of the Backups in it.
type Location struct {
	Name string
	// Tenants: a tenant writes into its bucket. Owner and NaBSL are its NonAdminBackupStorageLocation; empty if that is gone, or
	// was not proven to be the one that the location was made for.
	Tenants      bool
	Owner, NaBSL string
	Available    bool
	// Looked: Velero has looked into it since it is there, or never will.
	Looked   bool
	LookedAt time.Time
}

// Holds reports whether a Backup in the location may belong to an object of the namespace.
func (l *Location) Holds(namespace string) bool {
	return !l.Tenants || (l.Owner != "" && l.Owner == namespace)
}

// Locations reads the Velero BackupStorageLocations and whose they are, live.
func Locations(ctx context.Context, reader client.Reader, oadpNamespace string) (map[string]*Location, error) {
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
		locations[made.Name] = locationOf(made, tenants)
	}
	return locations, nil
}

// locationOf judges a location by the object that it names as its origin, nil if that does not exist.
func locationOf(made *velerov1.BackupStorageLocation, tenants *oadpv1alpha1.NonAdminBackupStorageLocation) *Location {
	l := &Location{
		Name: made.Name, Tenants: owner.Tenants(made),
		Available: made.Status.Phase == velerov1.BackupStorageLocationPhaseAvailable,
	}
	if synced := made.Status.LastSyncedTime; synced != nil {
		l.LookedAt = synced.Time
	}
	never := made.Spec.BackupSyncPeriod != nil && made.Spec.BackupSyncPeriod.Duration <= 0
	l.Looked = never || made.Status.Phase == velerov1.BackupStorageLocationPhaseUnavailable ||
		(l.Available && !l.LookedAt.IsZero() && !l.LookedAt.Before(made.CreationTimestamp.Time))
	if tenants != nil && tenants.DeletionTimestamp.IsZero() && owner.Location.MadeFor(made, tenants) {
		l.Owner, l.NaBSL = tenants.Namespace, tenants.Name
	}
	return l
}

// Waiting names an administrator's location that Velero has not looked into yet; empty if there is none. Without one that is
// available nothing is known of the stores. A tenant's is not waited for, since a store that never answers would be waited
// for for ever: see HeldBack.
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
		if !l.Tenants && !l.Looked && (waiting == "" || name < waiting) {
			waiting = name
		}
	}
	if waiting == "" && !available {
		return "any storage location"
	}
	return waiting
}

// HeldBack are the namespaces with a storage location of their own that Velero has not looked into yet: their NonAdminBackups
// may still be made.
func HeldBack(locations map[string]*Location) map[string]bool {
	namespaces := map[string]bool{}
	for _, l := range locations {
		if l.Tenants && l.Owner != "" && !l.Looked {
			namespaces[l.Owner] = true
		}
	}
	return namespaces
}

// LocationsOf reads the storage locations, which takes a while where there are many tenants' own.
func LocationsOf(ctx context.Context, reader client.Reader, oadpNamespace string) (map[string]*Location, error) {
	defer activities.Beating(ctx)()
	return Locations(ctx, reader, oadpNamespace)
}
