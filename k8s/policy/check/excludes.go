package check

import (
	"slices"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

// Resources that are never in a tenant's backup.
var (
	// Tenants' requests to Holdfast. Restored, they would request the same again.
	ExcludedNamespaceScoped = []string{
		oadpv1alpha1.ResourceNonAdminBackups,
		oadpv1alpha1.ResourceNonAdminRestores,
		oadpv1alpha1.ResourceNonAdminBackupStorageLocations,
		oadpv1alpha1.ResourceNonAdminDownloadRequests,
	}
	// Cluster-scoped resources, which Velero would include because a tenant's refer to them.
	ExcludedClusterScoped = []string{
		"securitycontextconstraints",
		"clusterroles",
		"clusterrolebindings",
		"priorityclasses",
		"customresourcedefinitions",
		"virtualmachineclusterinstancetypes",
		"virtualmachineclusterpreferences",
	}
)

// WithExcluded appends the resources that are missing in list. A list with "*" already excludes all, and Velero allows nothing
// beside it.
func WithExcluded(list, resources []string) []string {
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
