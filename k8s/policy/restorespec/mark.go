package restorespec

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// Mark is what Velero writes on everything that it restores from a tenant's storage location. ValidatingAdmissionPolicy
// holdfast-restores judges objects with a mark.
type Mark struct {
	// Into is the only namespace that the object may be restored into.
	Into string
	// By is the Velero Restore, and OADPNamespace its namespace.
	OADPNamespace, By string
}

// How a Mark is written.
const (
	// RestoredIntoAnnotation names the namespace, or is notAsItsFolder. It is not a label: Velero drops all labels of an object
	// if one of them is not a string.
	RestoredIntoAnnotation = "holdfast.dev/restored-into"
	// RestoredByAnnotation names the Velero Restore, after its namespace and a slash.
	RestoredByAnnotation = "holdfast.dev/restored-by"

	// notAsItsFolder is no valid namespace: an object with it is refused.
	notAsItsFolder = "Not.as.its.folder"
)

// ModifierKey is the one key of the ConfigMap that holds a Modifier.
const ModifierKey = "resourceModifiers.yaml"

// Modifier returns the resource modifier, in Velero's format, for restores from a tenant's storage location.
//
// A claim that names its volume would be bound to any volume of the cluster that has that name. Volumes and priority classes,
// which an object in the bucket can request by an annotation in spite of includeClusterResources (since Velero 1.18), get a
// name that the API server refuses, so that not even a label of an existing one is changed. Every restored object gets the
// mark, and loses two things: the annotation that restores a status in spite of restoreStatus, and the bucket's values for
// OpenShift's admission.
//
// An object is restored as the kind of its folder in the archive, and its mark lets it through only if the object itself names
// that kind. Velero creates in the group of the object's own apiVersion. If that group does not serve the folder's resource,
// Velero (1.18.3) waits for a cache of it without a limit, and all restores of the cluster wait with it.
//
// No rule has a condition on the namespace: Velero would compare it with the namespace in the file, and maps it to the tenant's
// later.
func (m Mark) Modifier(allowlist *Allowlist) (string, error) {
	rules := []modifierRule{
		merge("persistentvolumeclaims", `{"spec":{"volumeName":null}}`),
		merge("persistentvolumes", `{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":%q},"spec":null}`, unnamable),
		merge("priorityclasses.scheduling.k8s.io",
			`{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":%q},"value":"none"}`, unnamable),
		merge("**", `{"metadata":{"annotations":{%q:%q,%q:%q,"velero.io/restore-status":null,"openshift.io/scc":null}}}`,
			RestoredIntoAnnotation, notAsItsFolder, RestoredByAnnotation, m.OADPNamespace+"/"+m.By),
	}
	for _, kind := range allowlist.kinds() {
		rules = append(rules, merge(kind.String(), `{"apiVersion":%q,"kind":%q}`, kind.in(kind.Versions[0]), kind.Kind))
		for _, version := range kind.Versions {
			same := merge(kind.String(), `{"apiVersion":%q,"metadata":{"annotations":{%q:%q}}}`,
				kind.in(version), RestoredIntoAnnotation, m.Into)
			same.Conditions.Matches = []modifierMatch{{"/apiVersion", kind.in(version)}, {"/kind", kind.Kind}}
			rules = append(rules, same)
		}
	}
	text, err := yaml.Marshal(map[string]any{"version": "v1", "resourceModifierRules": rules})
	if err != nil {
		return "", fmt.Errorf("write the resource modifier of Velero Restore %s: %w", m.By, err)
	}
	return string(text), nil
}

// unnamable is not a valid name of an object.
const unnamable = "Not restored from a storage location of a tenant"

// modifierRule is a rule of Velero's resource modifiers. Its conditions are checked in the object as it was before any rule.
type modifierRule struct {
	Conditions struct {
		GroupResource string          `json:"groupResource"`
		Matches       []modifierMatch `json:"matches,omitempty"`
	} `json:"conditions"`
	MergePatches []modifierPatch `json:"mergePatches"`
}

type modifierMatch struct {
	Path  string `json:"path"`
	Value string `json:"value"`
}

type modifierPatch struct {
	PatchData string `json:"patchData"`
}

func merge(groupResource, patch string, args ...any) modifierRule {
	rule := modifierRule{MergePatches: []modifierPatch{{PatchData: fmt.Sprintf(patch, args...)}}}
	rule.Conditions.GroupResource = groupResource
	return rule
}

func (s Served) in(version string) string {
	return schema.GroupVersion{Group: s.Group, Version: version}.String()
}

// kinds are those that Velero may restore or follow an object to.
func (a *Allowlist) kinds() []Served {
	if a == nil {
		return nil
	}
	all := slices.Concat(a.Resources, a.Followed)
	slices.SortFunc(all, byName)
	return slices.CompactFunc(all, func(one, other Served) bool { return one.GroupResource == other.GroupResource })
}
