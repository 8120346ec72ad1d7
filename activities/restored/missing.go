package restored

import (
	"context"
	"errors"
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

// Comparison is what is needed to find missing objects, and those that were left out.
type Comparison struct {
	// Namespace is that of the backup's objects, and Into the one that they were restored into.
	Namespace, Into  string
	Backup, Restored objectstore.ResourceList
	// Spec is the spec of the Velero Restore.
	Spec    *velerov1.RestoreSpec
	Results objectstore.Results

	there sets.Set[string] // what Velero found to exist before, filled in by Missing
}

// Read reads the lists of the backup and of the restore.
func (c *Comparison) Read(ctx context.Context, store *objectstore.Store, restore string, progress func()) (err error) {
	if c.Backup, err = store.BackupResources(ctx, c.Spec.BackupName, c.Namespace); err != nil {
		return err
	}
	progress()
	if c.Restored, err = store.RestoreResources(ctx, restore, c.Into); err != nil {
		return err
	}
	progress()
	c.Results, err = store.RestoreResults(ctx, restore)
	if errors.Is(err, objectstore.ErrNotFound) {
		err = nil
	}
	return err
}

// Selects reports whether the restore has a label selector: the lists do not show what that leaves out.
func (c Comparison) Selects() bool {
	return c.Spec.LabelSelector != nil || len(c.Spec.OrLabelSelectors) > 0
}

// neverRestored are kinds that Velero leaves out, always or when the object is finished (Pods, Jobs), or that controllers
// create again.
var neverRestored = sets.New(
	schema.GroupKind{Kind: "Pod"}, schema.GroupKind{Group: "batch", Kind: "Job"},
).Union(NotReported)

// Derived are kinds that controllers make for other objects.
var Derived = sets.New(
	schema.GroupKind{Kind: "Endpoints"}, schema.GroupKind{Group: "discovery.k8s.io", Kind: "EndpointSlice"},
	schema.GroupKind{Group: "apps", Kind: "ControllerRevision"},
)

// NotReported are kinds that no restore brings, from any location.
var NotReported = sets.New(
	schema.GroupKind{Kind: "Event"}, schema.GroupKind{Group: "events.k8s.io", Kind: "Event"},
	schema.GroupKind{Group: "velero.io", Kind: "Backup"}, schema.GroupKind{Group: "velero.io", Kind: "Restore"},
)

// Missing returns the namespaced objects of the backup that the restore should have brought and did not, as `<kind>
// <name>`, in a fixed order. Velero's list of a restore holds the objects that it tried, each with the result.
func (c Comparison) Missing() []string {
	var missing []string
	if c.Selects() {
		return nil
	}
	c.there = wereThere(c.Results[objectstore.WarningsKey].Namespaces[c.Into])
	for _, kind := range slices.Sorted(maps.Keys(c.Backup)) {
		groupKind, resource := KindOf(kind)
		if neverRestored.Has(groupKind) || c.leftOut(kind, groupKind, resource) {
			continue
		}
		brought := c.Brought(kind, groupKind.Kind)
		for _, name := range c.Named(kind) {
			if !brought.Has(name) {
				missing = append(missing, groupKind.Kind+" "+name)
			}
		}
	}
	return missing
}

// Named returns the names of the backup's objects of a kind in the namespace, in order.
func (c Comparison) Named(kind string) []string {
	var names []string
	for _, entry := range slices.Sorted(slices.Values(c.Backup[kind])) {
		if namespace, name, namespaced := strings.Cut(entry, "/"); namespaced && namespace == c.Namespace {
			names = append(names, name)
		}
	}
	return names
}

// KindOf splits `<group>/<version>/<Kind>` and guesses the resource's name.
func KindOf(listed string) (schema.GroupKind, schema.GroupResource) {
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
func (c Comparison) leftOut(listed string, kind schema.GroupKind, resource schema.GroupResource) bool {
	return len(c.Restored[listed]) == 0 && !AsksFor(c.Spec, kind, resource)
}

// AsksFor reports whether a spec includes a kind, as far as known here: only the API server knows all names of a kind, short
// ones too.
func AsksFor(spec *velerov1.RestoreSpec, kind schema.GroupKind, resource schema.GroupResource) bool {
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

// Brought returns the names of the objects of a kind that exist after the restore. An object that Velero calls failed exists
// too, if Velero's only reason is that it existed before.
func (c Comparison) Brought(listed, kind string) sets.Set[string] {
	names := sets.New[string]()
	for _, entry := range c.Restored[listed] {
		name, became, explained := strings.Cut(strings.TrimSuffix(entry, ")"), "(")
		namespace, name, namespaced := strings.Cut(name, "/")
		if !namespaced || namespace != c.Into {
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
