package restorespec

import (
	"slices"
	"strings"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"holdfast.dev/holdfast/k8s/policy/check"
)

// Allowlist is what a restore may bring from a tenant's storage location: nothing, if it is zero.
//
// Velero creates what is in the bucket with a cluster administrator's rights. It filters by the folders of the archive, and
// creates in the group that the object itself names. A list of excluded resources would never be complete.
type Allowlist struct {
	// ClusterRole limits the resources to those that a holder of the role may create in a namespace.
	ClusterRole string
	// Resources are namespaced and sorted.
	Resources []Served
	// Shadowed are resources that the role may create, and that a namesake keeps from Resources.
	Shadowed []Shadowed
	// Followed are resources that Velero follows an object to, even if they are not included. They are judged, too.
	Followed []Served
	// Defaults are the administrator's rules, for all restores.
	Defaults Defaults
	// Names resolves the name of a resource in a spec as Velero does: short names, kinds, parts of groups.
	Names meta.RESTMapper
	// Problem says, for the tenant, why the list could not be made; empty if it could.
	Problem string
}

// Served is a resource that the API server serves.
type Served struct {
	schema.GroupResource

	Kind string
	// Versions in which it is served, the preferred one first.
	Versions   []string
	Namespaced bool
	Verbs      []string
}

// watchable: Velero waits for a cache of what it restores, without a limit, and all restores of the cluster wait with it.
func (s Served) watchable() bool {
	return slices.Contains(s.Verbs, "list") && slices.Contains(s.Verbs, "watch")
}

// Allowed returns the namespaced resources of the API server that can be created and that the rules of a role allow to create,
// except those that are never restored from a tenant's location. A plural that several groups serve is allowed in all of them
// or in none: in that case those that alone would be allowed are shadowed.
func Allowed(rules []rbacv1.PolicyRule, served []Served) (allowed []Served, shadowed []Shadowed) {
	refused := map[string]schema.GroupResource{} // by plural
	for _, resource := range slices.SortedFunc(slices.Values(served), byName) {
		if !resource.Namespaced || !slices.Contains(resource.Verbs, "create") {
			continue // it cannot be created
		}
		if !neverFromTenants(resource.GroupResource) && resource.watchable() && mayCreate(rules, resource.GroupResource) {
			allowed = append(allowed, resource)
		} else if _, known := refused[resource.Resource]; !known {
			refused[resource.Resource] = resource.GroupResource
		}
	}
	allowed = slices.DeleteFunc(allowed, func(s Served) bool {
		by, isRefused := refused[s.Resource]
		if isRefused {
			shadowed = append(shadowed, Shadowed{s.GroupResource, by})
		}
		return isRefused
	})
	return allowed, shadowed
}

// Followed returns the resources that Velero follows objects to, even if a restore does not include them.
func Followed(served []Served) []Served {
	followed := slices.DeleteFunc(slices.Clone(served), func(s Served) bool {
		switch s.String() {
		case "persistentvolumeclaims", "secrets", "volumesnapshots.snapshot.storage.k8s.io",
			"volumesnapshotcontents.snapshot.storage.k8s.io":
			return false
		}
		return true
	})
	slices.SortFunc(followed, byName)
	return followed
}

func byName(a, b Served) int { return strings.Compare(a.String(), b.String()) }

// mayCreate: a rule with names allows no creation, because the authorizer does not know the name then.
func mayCreate(rules []rbacv1.PolicyRule, resource schema.GroupResource) bool {
	return slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool {
		return len(rule.ResourceNames) == 0 && covers(rule.Verbs, "create") &&
			covers(rule.APIGroups, resource.Group) && covers(rule.Resources, resource.Resource)
	})
}

func covers(granted []string, wanted string) bool {
	return slices.Contains(granted, "*") || slices.Contains(granted, wanted)
}

var (
	// neverGroups: rights, requests to Velero and to Holdfast (but not check.Configuration), and OpenShift's builds, which are
	// admitted by their creator's rights: here Velero's.
	neverGroups = []string{
		"rbac.authorization.k8s.io", "authorization.openshift.io", "build.openshift.io", "oadp.openshift.io", "velero.io",
		"holdfast.dev",
	}
	// rbacResources and limitResources say who may do what in a namespace, and limit it.
	rbacResources  = []string{"roles", "rolebindings"}
	limitResources = []string{"resourcequotas", "limitranges", "networkpolicies"}
	// routeResources take over the traffic of Services.
	routeResources = []string{"endpoints", "endpointslices"}
	// unrestorable fail a Velero Restore that includes them.
	unrestorable = []string{"events"}
)

// neverFromTenants: these are never restored from a tenant's location, whatever the role allows. ValidatingAdmissionPolicy
// holdfast-restores has the same list.
func neverFromTenants(resource schema.GroupResource) bool {
	if slices.Contains(check.Configuration, resource.String()) {
		return false
	}
	never := slices.Concat(rbacResources, limitResources, routeResources, unrestorable)
	return slices.Contains(neverGroups, resource.Group) || strings.HasSuffix(resource.Group, ".holdfast.dev") ||
		slices.Contains(never, resource.Resource)
}

// Chosen returns the allowed resources that a spec includes; none if a is nil.
func (a *Allowlist) Chosen(spec *velerov1.RestoreSpec) []Served {
	if a == nil {
		return nil
	}
	includes := a.includes(spec)
	return slices.DeleteFunc(slices.Clone(a.Resources), func(resource Served) bool { return !includes(resource.GroupResource) })
}

// includes decides whether a spec includes a resource.
func (a *Allowlist) includes(spec *velerov1.RestoreSpec) func(schema.GroupResource) bool {
	everything := len(spec.IncludedResources) == 0 || slices.Contains(spec.IncludedResources, "*")
	included, excluded := a.resolved(spec.IncludedResources), a.resolved(spec.ExcludedResources)
	return func(resource schema.GroupResource) bool {
		return !SkippedByUpdate(spec, resource) && !slices.Contains(excluded, resource) &&
			(everything || slices.Contains(included, resource))
	}
}

// resolved are the resources that names stand for. A name that the API server does not know stands for itself.
func (a *Allowlist) resolved(names []string) []schema.GroupResource {
	resolved := make([]schema.GroupResource, 0, len(names))
	for _, name := range names {
		resource := schema.ParseGroupResource(name)
		if a.Names != nil {
			if found, err := a.Names.ResourceFor(resource.WithVersion("")); err == nil {
				resource = found.GroupResource()
			}
		}
		resolved = append(resolved, resource)
	}
	return resolved
}
