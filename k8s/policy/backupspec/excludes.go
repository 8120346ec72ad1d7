package backupspec

import (
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"

	"holdfast.dev/holdfast/k8s/policy/check"
)

// excludeFromBackup adds the excluded resources in the style of the spec's other filters: Velero refuses a mixture of the
// single list for all resources and the two lists by scope.
func excludeFromBackup(spec *velerov1.BackupSpec) {
	if filtersByScope(spec) {
		spec.ExcludedNamespaceScopedResources = check.WithExcluded(spec.ExcludedNamespaceScopedResources, check.ExcludedNamespaceScoped)
		spec.ExcludedClusterScopedResources = check.WithExcluded(spec.ExcludedClusterScopedResources, check.ExcludedClusterScoped)
		return
	}
	spec.ExcludedResources = check.WithExcluded(spec.ExcludedResources, check.ExcludedNamespaceScoped)
	spec.ExcludedResources = check.WithExcluded(spec.ExcludedResources, check.ExcludedClusterScoped)
}
