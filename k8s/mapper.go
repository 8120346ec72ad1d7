package k8s

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// RESTMapper maps each kind in scheme to its resource without calling the API server, so that a process can start while the API
// server is away. Our kinds and Velero's are namespaced, as are all others that Holdfast uses except Namespace,
// PersistentVolume, StorageClass and ClusterRole.
func RESTMapper(scheme *runtime.Scheme) meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(scheme.PrioritizedVersionsAllGroups())
	for kind := range scheme.AllKnownTypes() {
		if kind.Version == runtime.APIVersionInternal || strings.HasSuffix(kind.Kind, "Options") {
			continue
		}
		scope := meta.RESTScope(meta.RESTScopeNamespace)
		switch kind.GroupKind() {
		case schema.GroupKind{Kind: "Namespace"}, schema.GroupKind{Kind: "PersistentVolume"},
			schema.GroupKind{Group: "storage.k8s.io", Kind: "StorageClass"},
			schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:
			scope = meta.RESTScopeRoot
		}
		mapper.Add(kind, scope)
	}
	return mapper
}
