package check

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

// Configuration is what is Holdfast's own in a tenant's backup. A restore makes it anew, and never updates it: old rules of
// retention would delete backups that the present ones keep.
var Configuration = slices.Concat(
	inGroup(holdfastv1alpha1.GroupVersion, holdfastv1alpha1.Configuration),
	inGroup(fdbv1alpha1.GroupVersion, fdbv1alpha1.Configuration),
)

func inGroup(version schema.GroupVersion, resources []string) []string {
	var names []string
	for _, resource := range resources {
		names = append(names, version.WithResource(resource).GroupResource().String())
	}
	return names
}

// Resources that are never in a tenant's backup.
var (
	// Tenants' requests to Holdfast. Restored, they would request the same again. FoundationDB's operator has kinds of the same
	// plurals as ours, which are the tenant's.
	ExcludedNamespaceScoped = slices.Concat(oadpv1alpha1.Requests,
		inGroup(holdfastv1alpha1.GroupVersion, holdfastv1alpha1.Requests), inGroup(fdbv1alpha1.GroupVersion, fdbv1alpha1.Requests))
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
