package policy

import (
	"slices"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

// Resources that no tenant's backup holds.
var (
	// Tenants' requests to Holdfast. Restored, they would ask for the same again.
	excludedNamespaceScoped = []string{
		oadpv1alpha1.ResourceNonAdminBackups,
		oadpv1alpha1.ResourceNonAdminRestores,
		oadpv1alpha1.ResourceNonAdminBackupStorageLocations,
		oadpv1alpha1.ResourceNonAdminDownloadRequests,
	}
	// Resources that belong to the whole cluster, and which Velero would take along because a tenant's refer to them.
	excludedClusterScoped = []string{
		"securitycontextconstraints",
		"clusterroles",
		"clusterrolebindings",
		"priorityclasses",
		"customresourcedefinitions",
		"virtualmachineclusterinstancetypes",
		"virtualmachineclusterpreferences",
	}
)

// excludeFromBackup adds the excluded resources in the style of the spec's other filters: Velero refuses a mixture of the
// one list for all resources and the two lists by scope.
func excludeFromBackup(spec *velerov1.BackupSpec) {
	byScope := len(spec.IncludedClusterScopedResources)+len(spec.ExcludedClusterScopedResources)+
		len(spec.IncludedNamespaceScopedResources)+len(spec.ExcludedNamespaceScopedResources) > 0
	if byScope {
		spec.ExcludedNamespaceScopedResources = withExcluded(spec.ExcludedNamespaceScopedResources, excludedNamespaceScoped)
		spec.ExcludedClusterScopedResources = withExcluded(spec.ExcludedClusterScopedResources, excludedClusterScoped)
		return
	}
	spec.ExcludedResources = withExcluded(spec.ExcludedResources, excludedNamespaceScoped)
	spec.ExcludedResources = withExcluded(spec.ExcludedResources, excludedClusterScoped)
}

// withExcluded appends what list does not hold. A list with "*" already excludes all, and Velero allows nothing beside it.
func withExcluded(list, resources []string) []string {
	if slices.Contains(list, "*") {
		return list
	}
	for _, resource := range resources {
		if !slices.Contains(list, resource) {
			list = append(list, resource)
		}
	}
	return list
}
