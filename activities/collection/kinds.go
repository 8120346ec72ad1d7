package collection

import (
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/velero"
)

// Kind is a kind of objects that are made in the OADP namespace.
type Kind struct {
	schema.GroupVersionKind
	// Tenants is the kind for which it is made, and Origin how it names the tenant's object.
	Tenants string
	Origin  owner.Origin
	// NewOrigin returns an object of the tenants' kind to read into.
	NewOrigin func() client.Object
	// New returns an object to read into, if more than its metadata matters.
	New func() client.Object
	// FromStores: the tenants' objects are created again for what Velero finds in the object stores.
	FromStores bool
	// disposable reports whether an orphan may be deleted as it is now; nil is always.
	disposable func(client.Object) bool
}

// Kinds are collected in this order; objects that belong to a location in the order in which its deletion deletes them
// (docs/tenants.md, "Delete a location").
func Kinds() []Kind {
	location := func(kind schema.GroupVersionKind) Kind {
		return Kind{
			GroupVersionKind: kind, Tenants: oadpv1alpha1.KindNonAdminBackupStorageLocation, Origin: owner.Location,
			NewOrigin: func() client.Object { return &oadpv1alpha1.NonAdminBackupStorageLocation{} },
		}
	}
	return []Kind{
		location(oadpv1alpha1.GroupVersion.WithKind(oadpv1alpha1.KindApprovalRequest)),
		location(corev1.SchemeGroupVersion.WithKind("Secret")),
		location(velerov1.SchemeGroupVersion.WithKind("BackupStorageLocation")),
		{
			GroupVersionKind: velerov1.SchemeGroupVersion.WithKind("Restore"),
			Tenants:          oadpv1alpha1.KindNonAdminRestore, Origin: owner.Restore,
			NewOrigin: func() client.Object { return &oadpv1alpha1.NonAdminRestore{} },
			New:       func() client.Object { return &velerov1.Restore{} }, disposable: notRunning,
		},
		{
			GroupVersionKind: velerov1.SchemeGroupVersion.WithKind("Backup"),
			Tenants:          oadpv1alpha1.KindNonAdminBackup, Origin: owner.Backup,
			NewOrigin: func() client.Object { return &oadpv1alpha1.NonAdminBackup{} },
			New:       func() client.Object { return &velerov1.Backup{} }, disposable: holdsNothing, FromStores: true,
		},
	}
}

// notRunning: Velero has finished it. What Velero works on is left until it has ended.
func notRunning(object client.Object) bool {
	made, ok := object.(*velerov1.Restore)
	return ok && velero.Finished(made.Status.Phase)
}

// holdsNothing: Velero has stored nothing of it.
func holdsNothing(object client.Object) bool {
	made, ok := object.(*velerov1.Backup)
	return ok && velero.Unstarted(&made.Status) && made.Status.CompletionTimestamp == nil
}
