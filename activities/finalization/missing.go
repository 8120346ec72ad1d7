package finalization

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"holdfast.dev/holdfast/k8s/objectstore"
)

// comparison is what is needed to find missing objects, and those that were left out.
type comparison struct {
	namespace        string
	backup, restored objectstore.ResourceList
	spec             *velerov1.RestoreSpec // of the Velero Restore
	asked            *velerov1.RestoreSpec // the tenant's own
	results          objectstore.Results
	shadowed         map[string]string // resources that the restore left out for a namesake, with that
	there            sets.Set[string]  // what Velero found to exist before, filled in by missingObjects
}

// selects: the lists do not show what a selector leaves out.
func (c comparison) selects() bool {
	return c.spec.LabelSelector != nil || len(c.spec.OrLabelSelectors) > 0
}

// neverRestored are kinds that Velero leaves out, always or when the object is finished (Pods, Jobs), or that controllers
// create again.
var neverRestored = sets.New(
	schema.GroupKind{Kind: "Event"}, schema.GroupKind{Group: "events.k8s.io", Kind: "Event"},
	schema.GroupKind{Kind: "Pod"}, schema.GroupKind{Group: "batch", Kind: "Job"},
	schema.GroupKind{Group: "velero.io", Kind: "Backup"}, schema.GroupKind{Group: "velero.io", Kind: "Restore"},
)

// missingObjects returns the namespaced objects of the backup that the restore should have brought and did not, as `<kind>
// <name>`, in a fixed order. Velero's list of a restore holds the objects that it tried, each with the result.
func missingObjects(c comparison) []string {
	var missing []string
	if c.selects() {
		return nil
	}
	c.there = wereThere(c.results[objectstore.WarningsKey].Namespaces[c.namespace])
	for _, kind := range slices.Sorted(maps.Keys(c.backup)) {
		groupKind, resource := kindOf(kind)
		if neverRestored.Has(groupKind) || c.leftOut(kind, groupKind, resource) {
			continue
		}
		brought := c.brought(kind, groupKind.Kind)
		for _, name := range c.named(kind) {
			if !brought.Has(name) {
				missing = append(missing, groupKind.Kind+" "+name)
			}
		}
	}
	return missing
}

// named returns the names of the backup's objects of a kind in the namespace, in order.
func (c comparison) named(kind string) []string {
	var names []string
	for _, entry := range slices.Sorted(slices.Values(c.backup[kind])) {
		if namespace, name, namespaced := strings.Cut(entry, "/"); namespaced && namespace == c.namespace {
			names = append(names, name)
		}
	}
	return names
}

// kindOf splits `<group>/<version>/<Kind>` and guesses the resource's name.
func kindOf(listed string) (schema.GroupKind, schema.GroupResource) {
	version, kind := "", listed
	if at := strings.LastIndex(listed, "/"); at >= 0 {
		version, kind = listed[:at], listed[at+1:]
	}
	groupVersion, err := schema.ParseGroupVersion(version)
	if err != nil {
		return schema.GroupKind{Kind: kind}, schema.GroupResource{}
	}
	plural, _ := meta.UnsafeGuessKindToResource(groupVersion.WithKind(kind))
	return schema.GroupKind{Group: groupVersion.Group, Kind: kind}, plural.GroupResource()
}

// leftOut reports whether the restore left out a kind on purpose. Kinds that it tried were not left out.
func (c comparison) leftOut(listed string, kind schema.GroupKind, resource schema.GroupResource) bool {
	return len(c.restored[listed]) == 0 && !asksFor(c.spec, kind, resource)
}

// asksFor reports whether a spec includes a kind, as far as known here: only the API server knows all names of a kind, short
// ones too.
func asksFor(spec *velerov1.RestoreSpec, kind schema.GroupKind, resource schema.GroupResource) bool {
	means := func(name string) bool {
		name = strings.ToLower(name)
		singular := strings.ToLower(kind.Kind)
		return name == "*" || name == resource.Resource || name == resource.String() || name == singular ||
			name == schema.GroupResource{Group: kind.Group, Resource: singular}.String() ||
			slices.Contains(shortNames[resource], name)
	}
	return (len(spec.IncludedResources) == 0 || slices.ContainsFunc(spec.IncludedResources, means)) &&
		!slices.ContainsFunc(spec.ExcludedResources, means)
}

// shortNames are those of the kinds that are left out most often.
var shortNames = map[schema.GroupResource][]string{
	{Resource: "configmaps"}:                                     {"cm"},
	{Resource: "endpoints"}:                                      {"ep"},
	{Resource: "persistentvolumeclaims"}:                         {"pvc"},
	{Resource: "replicationcontrollers"}:                         {"rc"},
	{Resource: "serviceaccounts"}:                                {"sa"},
	{Resource: "services"}:                                       {"svc"},
	{Resource: "resourcequotas"}:                                 {"quota"},
	{Group: "apps", Resource: "daemonsets"}:                      {"ds"},
	{Group: "apps", Resource: "deployments"}:                     {"deploy"},
	{Group: "apps", Resource: "replicasets"}:                     {"rs"},
	{Group: "apps", Resource: "statefulsets"}:                    {"sts"},
	{Group: "autoscaling", Resource: "horizontalpodautoscalers"}: {"hpa"},
	{Group: "batch", Resource: "cronjobs"}:                       {"cj"},
	{Group: "networking.k8s.io", Resource: "ingresses"}:          {"ing"},
	{Group: "networking.k8s.io", Resource: "networkpolicies"}:    {"netpol"},
	{Group: "policy", Resource: "poddisruptionbudgets"}:          {"pdb"},
}

// brought returns the names of the objects of a kind that exist after the restore. An object that Velero calls failed exists
// too, if Velero's only reason is that it existed before.
func (c comparison) brought(listed, kind string) sets.Set[string] {
	names := sets.New[string]()
	for _, entry := range c.restored[listed] {
		name, became, explained := strings.Cut(strings.TrimSuffix(entry, ")"), "(")
		namespace, name, namespaced := strings.Cut(name, "/")
		if !namespaced || namespace != c.namespace {
			continue
		}
		if !explained || became != "failed" || c.there.Has(kind+"/"+name) {
			names.Insert(name)
		}
	}
	return names
}

// alreadyExists matches Velero's two texts for that.
var alreadyExists = regexp.MustCompile(`(\w+)(?::(\S+)| "([^"]+)") already exists`)

// wereThere returns `<kind>/<name>` of the objects that, by Velero's warnings, existed before. There may be as many warnings as
// objects.
func wereThere(warnings []string) sets.Set[string] {
	there := sets.New[string]()
	for _, warning := range warnings {
		if said := alreadyExists.FindStringSubmatch(warning); said != nil {
			there.Insert(said[1] + "/" + said[2] + said[3])
		}
	}
	return there
}
