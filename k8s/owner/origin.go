package owner

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

// Origin is how an object in the OADP namespace says for which tenant's object of one kind it was made.
//
// Tenants cannot write into the OADP namespace. But Velero restores into it what it finds in a tenant's bucket, and a tenant
// can write the status and the labels of its own objects. Hence five strengths of evidence, from the weakest to the strongest:
//
//   - What a tenant's object says of itself (Claimed, Claims, Written, SyncedFrom) proves nothing. It is a name to read.
//   - A hint (Hint, UID, MayBeTenants, MayBeOf) says what an event may concern, and what need not be read. It is enough to
//     signal a workflow, which reads for itself.
//   - An object that names the tenant's object (Names, Named; of a backup's location MayHold, Tenants) may be read, mirrored and
//     shown, and deleted when that tenant requests it.
//   - An object that also has the name it was given (Called), for that object and no other of its name (MadeFor, ForAnother), may
//     hold a tenant's keys and backups.
//   - A proven object (Proven, Derived) may be deleted without a request, be offered to the tenant as an object of its own, and
//     be entered in the ledger of released backups.
//
// Callers, the evidence that each needs, and why (packages of activities by their last element):
//
//	starter/watch           Hint; location_events Called, since it builds a reference from the UID
//	starter/watch/queue     Names: it writes the status of the object that is named
//	backup, restore         Claimed to read, Names before anything else; backups MayHold too, since they come from buckets
//	backup (ledger)         the Velero Backup's Names, or Derived if that is gone
//	download, finalization  Names, Named; Tenants and MayHold, since a URL is signed with the location's keys
//	k8s/policy, location    Claimed to read, Called before a location is used, changed, or deleted
//	synchronization         Proven backups, in a location that is MadeFor its owner: they become a tenant's objects
//	collection              Proven, and gone or ForAnother: nobody requests the deletion
type Origin struct {
	namespaceAnnotation, nameAnnotation, nacuuidLabel string
	// uidAnnotation is missing on objects that the OADP non-admin controller has made.
	uidAnnotation string
}

// Origins, by the kind of the tenant's object.
var (
	Backup = Origin{
		namespaceAnnotation: oadpv1alpha1.NabOriginNamespaceAnnotation,
		nameAnnotation:      oadpv1alpha1.NabOriginNameAnnotation,
		nacuuidLabel:        oadpv1alpha1.NabOriginNACUUIDLabel,
	}
	Restore = Origin{
		namespaceAnnotation: oadpv1alpha1.NarOriginNamespaceAnnotation,
		nameAnnotation:      oadpv1alpha1.NarOriginNameAnnotation,
		nacuuidLabel:        oadpv1alpha1.NarOriginNACUUIDLabel,
	}
	Location = Origin{
		namespaceAnnotation: oadpv1alpha1.NabslOriginNamespaceAnnotation,
		nameAnnotation:      oadpv1alpha1.NabslOriginNameAnnotation,
		nacuuidLabel:        oadpv1alpha1.NabslOriginNACUUIDLabel,
		uidAnnotation:       oadpv1alpha1.NabslOriginUIDAnnotation,
	}
	Download = Origin{
		namespaceAnnotation: oadpv1alpha1.NadrOriginNamespaceAnnotation,
		nameAnnotation:      oadpv1alpha1.NadrOriginNameAnnotation,
		nacuuidLabel:        oadpv1alpha1.NadrOriginNACUUIDLabel,
	}
)

// validValue reports whether an annotation can be the name of an object or a namespace. (The OADP non-admin controller takes
// names of up to 252 characters.)
func validValue(value string) bool { return len(value) > 0 && len(value) <= 253 }

// Hint returns the tenant's object that made may concern, and false if it names none.
func (o Origin) Hint(made metav1.Object) (types.NamespacedName, bool) {
	annotations := made.GetAnnotations()
	key := types.NamespacedName{Namespace: annotations[o.namespaceAnnotation], Name: annotations[o.nameAnnotation]}
	return key, validValue(key.Namespace) && validValue(key.Name)
}

// Named returns the tenant's object that made names as its origin.
func (o Origin) Named(made metav1.Object) (types.NamespacedName, bool) {
	key, hinted := o.Hint(made)
	return key, hinted && made.GetLabels()[oadpv1alpha1.OadpLabel] == oadpv1alpha1.OadpLabelValue
}

// Names reports whether made, which may be nil, names the tenant's object of that name as its origin.
func (o Origin) Names(made metav1.Object, namespace, name string) bool {
	if made == nil || reflect.ValueOf(made).IsNil() {
		return false
	}
	key, named := o.Named(made)
	return named && key == types.NamespacedName{Namespace: namespace, Name: name}
}

// Called is Names of an object that still has the name it was given: it is not a copy.
func (o Origin) Called(made metav1.Object, namespace, name string) bool {
	return o.Names(made, namespace, name) && o.called(made)
}

func (o Origin) called(made metav1.Object) bool {
	return made.GetLabels()[o.nacuuidLabel] == made.GetName()
}

// UID is the UID of the tenant's object that made names as its origin; empty if it gives none.
func (o Origin) UID(made metav1.Object) types.UID {
	return types.UID(made.GetAnnotations()[o.uidAnnotation])
}

// ForAnother reports whether made names, by its UID, an earlier object of the same name as of.
func (o Origin) ForAnother(made, of metav1.Object) bool {
	uid := o.UID(made)
	return uid != "" && uid != of.GetUID()
}

// MadeFor is Called, for exactly that object and no other of its name.
func (o Origin) MadeFor(made, of metav1.Object) bool {
	return o.Called(made, of.GetNamespace(), of.GetName()) && !o.ForAnother(made, of)
}

// Proven returns the tenant's object, which may be gone, that made was made for. It is false unless made has everything that
// Holdfast, or the OADP non-admin controller, writes on such objects, and the object named could exist.
func (o Origin) Proven(made metav1.Object) (types.NamespacedName, bool) {
	key, named := o.Named(made)
	return key, named && o.called(made) && len(made.GetName()) <= oadpv1alpha1.MaxNACUUIDLength &&
		made.GetLabels()[oadpv1alpha1.ManagedByLabel] == oadpv1alpha1.ManagedByLabelValue &&
		len(validation.IsDNS1123Label(key.Namespace)) == 0 && len(validation.IsDNS1123Subdomain(key.Name)) == 0
}

// Label is the key of the label on every object that was made for objects of the kind.
func (o Origin) Label() string { return o.nacuuidLabel }

// Labels are on every object that was made under a NACUUID, and select it.
func (o Origin) Labels(nacuuid string) map[string]string {
	return map[string]string{oadpv1alpha1.OadpLabel: oadpv1alpha1.OadpLabelValue, o.nacuuidLabel: nacuuid}
}

// Meta returns the metadata for an object in the OADP namespace that is made for a tenant's object with that NACUUID.
func (o Origin) Meta(of metav1.Object, nacuuid, namespace, name string) metav1.ObjectMeta {
	made := metav1.ObjectMeta{
		Namespace: namespace, Name: name, Labels: o.Labels(nacuuid),
		Annotations: map[string]string{o.namespaceAnnotation: of.GetNamespace(), o.nameAnnotation: of.GetName()},
	}
	made.Labels[oadpv1alpha1.ManagedByLabel] = oadpv1alpha1.ManagedByLabelValue
	if o.uidAnnotation != "" {
		made.Annotations[o.uidAnnotation] = string(of.GetUID())
	}
	return made
}

// Keys are those of all labels and annotations by which this package decides.
func Keys() []string {
	keys := []string{oadpv1alpha1.OadpLabel, oadpv1alpha1.ManagedByLabel, oadpv1alpha1.NabSyncLabel}
	for _, o := range []Origin{Backup, Restore, Location, Download} {
		keys = append(keys, o.nacuuidLabel, o.nameAnnotation, o.namespaceAnnotation)
		if o.uidAnnotation != "" {
			keys = append(keys, o.uidAnnotation)
		}
	}
	return keys
}
