package restorespec

import (
	"slices"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/k8s/policy/check"
)

// excludedFromRestore: a restore never creates these, whichever backup holds them.
var excludedFromRestore = slices.Concat(
	[]string{"volumesnapshotclasses"}, check.ExcludedNamespaceScoped, check.ExcludedClusterScoped)

// excludedFromUpdates: an old backup would restore rights that have been revoked since, remove present limits of the namespace,
// or put back old rules of retention.
var excludedFromUpdates = slices.Concat([]string{
	"roles.rbac.authorization.k8s.io", "rolebindings.rbac.authorization.k8s.io",
	"roles.authorization.openshift.io", "rolebindings.authorization.openshift.io",
	"resourcequotas", "limitranges", "networkpolicies.networking.k8s.io",
}, check.Configuration)

// SkippedByUpdate reports whether a restore leaves out a resource of Holdfast because it updates what exists.
func SkippedByUpdate(spec *velerov1.RestoreSpec, resource schema.GroupResource) bool {
	return spec.ExistingResourcePolicy == velerov1.PolicyTypeUpdate && slices.Contains(check.Configuration, resource.String())
}

// nothing is a resource that does not exist: to Velero an empty list of included resources means all.
const nothing = "nothing.holdfast.dev"

// Build returns the spec of the Velero Restore for a NonAdminRestore that Validate found valid: the tenant's spec with the
// administrator's values in unset fields, of the tenant's namespace only, without the excluded resources.
//
// From a tenant's storage location a restore brings only what the source's Allowlist names, and no status; the resource
// modifier is the ConfigMap named modifier, which holds what Modifier returns. From an administrator's location it brings
// everything of the namespace and the volumes of restored claims. Existing roles, limits and plans are never updated.
//
// Nothing in the result is shared with nar or the policy. The result keeps to the tenant's namespace and to the policy whether
// or not the spec was found valid.
func Build(nar *oadpv1alpha1.NonAdminRestore, source Source, p policy.Policy, modifier string) velerov1.RestoreSpec {
	spec := effectiveRestoreSpec(nar, p)
	spec.BackupName = ""
	if source.Backup != nil {
		spec.BackupName = source.Backup.Name
	}
	spec.ScheduleName = ""
	spec.IncludedNamespaces = []string{nar.Namespace}
	spec.ExcludedNamespaces = nil
	spec.NamespaceMapping = nil
	if check.IsTrue(spec.IncludeClusterResources) {
		spec.IncludeClusterResources = nil
	}
	if source.Tenants() {
		none := false
		spec.IncludeClusterResources = &none
		spec.ResourceModifier = &corev1.TypedLocalObjectReference{Kind: "ConfigMap", Name: modifier}
		spec.RestoreStatus = nil
		spec.IncludedResources, spec.ExcludedResources = included(source.Allowlist.Chosen(spec)), nil
	}
	spec.ExcludedResources = check.WithExcluded(spec.ExcludedResources, excludedFromRestore)
	if spec.ExistingResourcePolicy == velerov1.PolicyTypeUpdate {
		spec.ExcludedResources = check.WithExcluded(spec.ExcludedResources, excludedFromUpdates)
	}
	return *spec
}

// maxModifierBytes is what the API server accepts as the data of a ConfigMap.
const maxModifierBytes = 1 << 20

// Modifier returns the resource modifier of the Velero Restore that Build describes, from a tenant's storage location:
// mark.Modifier of what the spec chooses. A *check.InvalidSpecError says that no ConfigMap can hold it.
//
// What the backup holds is not considered: the list is in the tenant's bucket, which the judgement of a spec does not wait for.
func Modifier(nar *oadpv1alpha1.NonAdminRestore, source Source, p policy.Policy, mark Mark) (string, error) {
	allowlist := *source.Allowlist
	allowlist.Resources = allowlist.Chosen(effectiveRestoreSpec(nar, p))
	text, err := mark.Modifier(&allowlist)
	if err != nil {
		return "", err
	}
	if len(text) > maxModifierBytes {
		return "", check.External("NonAdminRestore spec.restoreSpec selects too many kinds to restore at once from a "+
			"NonAdminBackupStorageLocation: %d, whose resource modifier has %d bytes, and a ConfigMap holds %d; name the kinds that "+
			"you need in includedResources", len(allowlist.Resources), len(text), maxModifierBytes)
	}
	return text, nil
}

func included(chosen []Served) []string {
	if len(chosen) == 0 {
		return []string{nothing}
	}
	names := make([]string, 0, len(chosen))
	for _, resource := range chosen {
		names = append(names, resource.String())
	}
	return names
}

// effectiveRestoreSpec is a copy of the tenant's spec, with the administrator's values in unset fields.
func effectiveRestoreSpec(nar *oadpv1alpha1.NonAdminRestore, p policy.Policy) *velerov1.RestoreSpec {
	spec := &velerov1.RestoreSpec{}
	if nar.Spec.RestoreSpec != nil {
		spec = nar.Spec.RestoreSpec.DeepCopy()
	}
	check.ApplyEnforced(spec, enforcedRestoreSpec(p))
	return spec
}
