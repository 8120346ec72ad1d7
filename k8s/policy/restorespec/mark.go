package restorespec

import (
	"fmt"
	"slices"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/k8s/policy/check"
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
	// asItsFolder is the mark of an object of its folder's kind while its version is not known to be served. None keeps it.
	asItsFolder = "Of.the.kind.of.its.folder"
)

// ModifierKey is the one key of the ConfigMap that holds a Modifier.
const ModifierKey = "resourceModifiers.yaml"

// Modifier returns the resource modifier, in Velero's format, for restores from a tenant's storage location of what an allowlist
// has.
//
// A claim that names its volume would be bound to any volume of the cluster that has that name. Volumes and priority classes,
// which an object in the bucket can request by an annotation in spite of includeClusterResources (since Velero 1.18), get a
// name that the API server refuses, so that not even a label of an existing one is changed. Every restored object gets the
// mark, and loses two things: the annotation that restores a status in spite of restoreStatus, and the bucket's values for
// OpenShift's admission. Plans, and what else is Holdfast's own, also lose their finalizers, the mark of a default plan, and a
// request for a run.
//
// An object is restored as the kind of its folder in the archive, and its mark lets it through only if the object itself names
// that kind. Velero creates in the group of the object's own apiVersion. If that group does not serve the folder's resource,
// Velero (1.18.3) waits for a cache of it without a limit, and all restores of the cluster wait with it.
//
// The administrator's defaults come first, and ours last: Velero compares the conditions of all rules with the object of the
// archive, and applies the patches one after another. So whatever a default rule does, an object of a kind that may not come is
// not let through, and no claim gets a volume. Where both patch a field ours wins, and rightly: a default rule is for what is
// restored from anywhere, and what ours write is judged for a tenant's bucket alone. A default rule that converts kinds has no
// effect there.
//
// No rule of ours has a condition on the namespace: Velero would compare it with the namespace in the file, and maps it to the
// tenant's later.
func (m Mark) Modifier(allowlist *Allowlist) (string, error) { return m.modifier(allowlist, nil) }

// modifier is Modifier with further rules, which come after the administrator's.
func (m Mark) modifier(allowlist *Allowlist, further []modifierRule) (string, error) {
	text := &modifierText{}
	if allowlist != nil {
		text.add(allowlist.Defaults.rules...)
	}
	text.add(further...)
	text.add(
		merge("persistentvolumeclaims", `{"spec":{"volumeName":null}}`),
		merge("persistentvolumes", `{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":%q},"spec":null}`, unnamable),
		merge("priorityclasses.scheduling.k8s.io",
			`{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":%q},"value":"none"}`, unnamable),
		merge("**", `{"metadata":{"annotations":{%q:%q,%q:%q,"velero.io/restore-status":null,"openshift.io/scc":null}}}`,
			RestoredIntoAnnotation, notAsItsFolder, RestoredByAnnotation, m.OADPNamespace+"/"+m.By),
	)
	kinds := allowlist.kinds()
	for _, kind := range kinds {
		if slices.Contains(check.Configuration, kind.String()) {
			text.add(merge(kind.String(), `{"metadata":{"finalizers":null,"labels":{%q:null},"annotations":{%q:null}}}`,
				holdfastv1alpha1.LabelDefaultPlan, holdfastv1alpha1.AnnotationRunNow))
		}
	}
	for _, kind := range kinds {
		text.add(merge(kind.String(), `{"kind":%q}`, kind.Kind))
	}
	text.shared = merge("", `{"metadata":{"annotations":{%q:%q}}}`, RestoredIntoAnnotation, asItsFolder).MergePatches
	for _, kind := range kinds {
		text.addShared(modifierConditions{GroupResource: kind.String(), Matches: []modifierMatch{{"/kind", kind.Kind}}})
	}
	text.add(versionRules(kinds, m.Into)...)
	text.add(remark("**", asItsFolder, notAsItsFolder))
	if text.err != nil {
		return "", fmt.Errorf("write the resource modifier of Velero Restore %s: %w", m.By, text.err)
	}
	return text.String(), nil
}

// unnamable is not a valid name of an object.
const unnamable = "Not restored from a storage location of a tenant"
