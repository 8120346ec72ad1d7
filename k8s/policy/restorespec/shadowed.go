package restorespec

import (
	"fmt"
	"slices"
	"strings"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/policy"
)

// Shadowed is a resource that a restore from a tenant's storage location leaves out although the role may create it: Knative's
// services.serving.knative.dev, which it may not, have the plural of services.
type Shadowed struct {
	Resource schema.GroupResource
	// By is a resource of the same plural that never comes.
	By schema.GroupResource
}

// ShadowedAnnotation on a Velero Restore names what it leaves out for a namesake, for the report of its finalization.
const ShadowedAnnotation = "holdfast.dev/shadowed-resources"

// maxShadowed keeps the annotation far below the API server's limit, 256 KiB.
const maxShadowed = 500

// ShadowedBy returns the value of ShadowedAnnotation for the Velero Restore that Build describes; empty if it has none.
func ShadowedBy(nar *oadpv1alpha1.NonAdminRestore, source Source, p policy.Policy) string {
	if !source.Tenants() {
		return ""
	}
	shadowed := source.Allowlist.shadowed(effectiveRestoreSpec(nar, p))
	var pairs []string
	for _, each := range shadowed[:min(len(shadowed), maxShadowed)] {
		pairs = append(pairs, each.Resource.String()+"="+each.By.String())
	}
	return strings.Join(pairs, ",")
}

// ReadShadowed reads the value of ShadowedAnnotation: a resource's namesake by the resource.
func ReadShadowed(annotation string) map[string]string {
	by := map[string]string{}
	for pair := range strings.SplitSeq(annotation, ",") {
		if resource, namesake, ok := strings.Cut(pair, "="); ok {
			by[resource] = namesake
		}
	}
	return by
}

// shadowed returns the shadowed resources that a spec includes; none if a is nil.
func (a *Allowlist) shadowed(spec *velerov1.RestoreSpec) []Shadowed {
	if a == nil {
		return nil
	}
	includes := a.includes(spec)
	return slices.DeleteFunc(slices.Clone(a.Shadowed), func(each Shadowed) bool { return !includes(each.Resource) })
}

// reason explains, after a verdict, why the first of the shadowed resources does not come.
func reason(shadowed []Shadowed) string {
	if len(shadowed) == 0 {
		return ""
	}
	first := shadowed[0]
	return fmt.Sprintf("; %s, which it may, is left out because of %s, which has the same plural", first.Resource, first.By)
}
