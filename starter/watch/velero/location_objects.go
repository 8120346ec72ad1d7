package velero

import (
	"maps"
	"slices"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/location"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/starter/watch/caches"
	"holdfast.dev/holdfast/starter/watch/trim"
)

// nonAdminLocations are cached with all fields that are compared with the objects made for them, up to a limit.
var nonAdminLocations = caches.New(caches.Kind{
	Finalizers: []string{oadpv1alpha1.NabslFinalizer},
	Phase: func(object client.Object) string {
		return string(object.(*oadpv1alpha1.NonAdminBackupStorageLocation).Status.Phase)
	},
}, func(kept, of *oadpv1alpha1.NonAdminBackupStorageLocation) {
	kept.Spec, kept.Status = of.Spec, of.Status
	kept.Spec.Unreadable = trim.Text(of.Spec.Unreadable)
	if trim.Footprint(of.Spec)+trim.Footprint(of.Status) <= trim.LocationBytes {
		return
	}
	trim.Omit(kept, of.Spec, of.Status)
	kept.Spec.BackupStorageLocationSpec = credentialOnly(of.Spec.BackupStorageLocationSpec)
	kept.Status = oadpv1alpha1.NonAdminBackupStorageLocationStatus{
		Phase: of.Status.Phase, Conditions: trim.Conditions(of.Status.Conditions,
			oadpv1alpha1.NonAdminConditionAccepted, oadpv1alpha1.NonAdminConditionClusterAdminApproved),
	}
	if made := of.Status.VeleroBackupStorageLocation; made != nil {
		kept.Status.VeleroBackupStorageLocation = &oadpv1alpha1.VeleroBackupStorageLocation{NACUUID: trim.Text(made.NACUUID)}
	}
})

var approvalRequests = caches.New(caches.Kind{InOADP: true, Keys: location.DecisionAnnotations()},
	func(kept, of *oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequest) {
		kept.Spec, kept.Status = of.Spec, of.Status
		const two = 2 // it holds the spec that was approved, and the pending one
		if trim.Footprint(of.Spec)+trim.Footprint(of.Status) <= two*trim.LocationBytes {
			return
		}
		trim.Omit(kept, of.Spec, of.Status)
		kept.Spec.PendingApprovalDecision = trim.Name(of.Spec.PendingApprovalDecision)
		kept.Status = oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequestStatus{
			ObservedGeneration: of.Status.ObservedGeneration,
			Conditions:         trim.Conditions(of.Status.Conditions, oadpv1alpha1.NonAdminConditionClusterAdminApproved),
		}
		if asked := of.Status.VeleroBackupStorageLocationApprovalRequest; asked != nil {
			kept.Status.VeleroBackupStorageLocationApprovalRequest = &oadpv1alpha1.VeleroBackupStorageLocationApprovalRequest{
				PendingSpec: credentialOnly(asked.PendingSpec), ApprovedSpec: credentialOnly(asked.ApprovedSpec),
			}
		}
	})

// veleroLocations are cached with all fields that are compared with the spec, up to a limit.
var veleroLocations = caches.New(caches.Kind{
	InOADP: true,
	Keys:   []string{oadpv1alpha1.RegistryLabel, oadpv1alpha1.CopiedFromAnnotation, oadpv1alpha1.CopiedVersionAnnotation},
	Phase: func(object client.Object) string {
		return string(object.(*velerov1.BackupStorageLocation).Status.Phase)
	},
}, func(kept, of *velerov1.BackupStorageLocation) {
	kept.Spec, kept.Status = of.Spec, of.Status
	kept.Labels, kept.Annotations = marks(kept.Labels, of.Labels), marks(kept.Annotations, of.Annotations)
	kept.Status.Message = trim.Text(of.Status.Message)
	if trim.Footprint(of.Spec) > trim.LocationBytes {
		trim.Omit(kept, of.Spec)
		kept.Spec = *credentialOnly(&of.Spec)
	}
})

// credentialOnly keeps of a storage location's spec only the name of its Secret.
func credentialOnly(spec *velerov1.BackupStorageLocationSpec) *velerov1.BackupStorageLocationSpec {
	if spec == nil {
		return nil
	}
	kept := &velerov1.BackupStorageLocationSpec{}
	if spec.Credential != nil {
		kept.Credential = spec.Credential.DeepCopy()
		kept.Credential.Name, kept.Credential.Key = trim.Name(spec.Credential.Name), trim.Name(spec.Credential.Key)
	}
	return kept
}

// marks keeps, beside the known keys, all that say that a storage location was made for a tenant.
func marks(kept, all map[string]string) map[string]string {
	room := trim.MapBytes
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if room -= len(key); room < 0 {
			break
		}
		_, has := kept[key]
		if !has && owner.Marks(key) {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[key] = ""
		}
	}
	return kept
}
