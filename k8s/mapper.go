package k8s

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
)

// RESTMapper knows which resource stands for each kind in scheme, without asking the API server: a process can start while
// that is away. Our kinds and Velero's are namespaced, as are all others that Holdfast uses but Namespace.
func RESTMapper(scheme *runtime.Scheme) meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(scheme.PrioritizedVersionsAllGroups())
	for kind := range scheme.AllKnownTypes() {
		if kind.Version == runtime.APIVersionInternal || strings.HasSuffix(kind.Kind, "Options") {
			continue
		}
		scope := meta.RESTScope(meta.RESTScopeNamespace)
		if kind == corev1.SchemeGroupVersion.WithKind("Namespace") {
			scope = meta.RESTScopeRoot
		}
		mapper.Add(kind, scope)
	}
	return mapper
}
