package policy

import (
	"slices"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

// excludedFromRestore: a restore leaves these alone, whoever wrote them into the backup.
var excludedFromRestore = slices.Concat([]string{"volumesnapshotclasses"}, excludedNamespaceScoped, excludedClusterScoped)

// BuildRestoreSpec returns the spec of the Velero Restore for a NonAdminRestore that ValidateRestore found valid: the
// tenant's, with the administrator's values where it sets none, of the tenant's namespace only, without the resources that
// tenants do not get.
//
// From a tenant's storage location no cluster-scoped resource comes back, and the resource modifier is the ConfigMap called
// modifier, which holds RestoreModifier. From an administrator's, the volumes of restored claims do.
//
// Nothing in the result is shared with nar or the policy. The result keeps to the tenant's namespace and to the policy
// whether or not the spec was found valid.
func BuildRestoreSpec(nar *oadpv1alpha1.NonAdminRestore, source RestoreSource, p Policy, modifier string) velerov1.RestoreSpec {
	spec := &velerov1.RestoreSpec{}
	if nar.Spec.RestoreSpec != nil {
		spec = nar.Spec.RestoreSpec.DeepCopy()
	}
	applyEnforced(spec, enforcedRestoreSpec(p))
	spec.BackupName = ""
	if source.Backup != nil {
		spec.BackupName = source.Backup.Name
	}
	spec.ScheduleName = ""
	spec.IncludedNamespaces = []string{nar.Namespace}
	spec.ExcludedNamespaces = nil
	spec.NamespaceMapping = nil
	if isTrue(spec.IncludeClusterResources) {
		spec.IncludeClusterResources = nil
	}
	if source.Tenants() {
		none := false
		spec.IncludeClusterResources = &none
		spec.ResourceModifier = &corev1.TypedLocalObjectReference{Kind: "ConfigMap", Name: modifier}
	}
	spec.ExcludedResources = withExcluded(spec.ExcludedResources, excludedFromRestore)
	return *spec
}

// RestoreModifier is what Velero's resource modifiers do to what comes back from a tenant's storage location. A claim that
// names its volume would be bound to whichever volume of the cluster has that name. No rule asks for a namespace: Velero
// compares it with the one that the file in the bucket names, and restores into the tenant's after that. The other rules
// make the API server refuse what Velero (since 1.18) restores in spite of includeClusterResources: an object in the bucket
// can ask for it by an annotation.
const RestoreModifier = `version: v1
resourceModifierRules:
- conditions:
    groupResource: persistentvolumeclaims
  mergePatches:
  - patchData: '{"spec":{"volumeName":null}}'
- conditions:
    groupResource: persistentvolumes
  mergePatches:
  - patchData: '{"metadata":{"name":"Not restored from a storage location of a tenant"},"spec":null}'
- conditions:
    groupResource: priorityclasses.scheduling.k8s.io
  mergePatches:
  - patchData: '{"metadata":{"name":"Not restored from a storage location of a tenant"},"value":"none"}'
`

// RestoreModifierKey is the one key of the ConfigMap that holds RestoreModifier.
const RestoreModifierKey = "resourceModifiers.yaml"
