package restorespec

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// modifierRule is a rule of Velero's resource modifiers. Its conditions are checked in the object as it was before any rule; its
// patches apply to what the rules before have left. If one of Patches is a test that fails, the rule changes nothing.
type modifierRule struct {
	Conditions       modifierConditions  `json:"conditions"`
	Patches          []modifierOperation `json:"patches,omitempty"`
	MergePatches     []modifierPatch     `json:"mergePatches,omitempty"`
	StrategicPatches []modifierPatch     `json:"strategicPatches,omitempty"`
}

type modifierConditions struct {
	Namespaces []string `json:"namespaces,omitempty"`
	// GroupResource is a glob, whose * and ? match no dot.
	GroupResource     string                `json:"groupResource"`
	ResourceNameRegex string                `json:"resourceNameRegex,omitempty"`
	LabelSelector     *metav1.LabelSelector `json:"labelSelector,omitempty"`
	Matches           []modifierMatch       `json:"matches,omitempty"`
}

type modifierMatch struct {
	Path  string `json:"path"`
	Value string `json:"value,omitempty"`
}

type modifierOperation struct {
	Operation string `json:"operation"`
	From      string `json:"from,omitempty"`
	Path      string `json:"path"`
	Value     string `json:"value,omitempty"`
}

type modifierPatch struct {
	PatchData string `json:"patchData"`
}

func merge(groupResource, patch string, args ...any) modifierRule {
	return modifierRule{
		Conditions:   modifierConditions{GroupResource: groupResource},
		MergePatches: []modifierPatch{{PatchData: fmt.Sprintf(patch, args...)}},
	}
}

// remark is a rule that replaces one mark by another.
func remark(groupResource, from, to string) modifierRule {
	path := "/metadata/annotations/" + strings.ReplaceAll(RestoredIntoAnnotation, "/", "~1")
	return modifierRule{
		Conditions: modifierConditions{GroupResource: groupResource},
		Patches: []modifierOperation{
			{Operation: "test", Path: path, Value: quoted(from)}, {Operation: "replace", Path: path, Value: quoted(to)},
		},
	}
}

// quoted: without quotation marks Velero reads "true" and "1", which are names of namespaces, too, as other types.
func quoted(text string) string { return `"` + text + `"` }

// modifierText is a resource modifier as it is written: a rule a line, since a ConfigMap holds no more than 1 MiB, and a cluster
// may have thousands of kinds.
type modifierText struct {
	// shared are the patches of many rules. The first of them has the text, the others refer to it.
	shared  []modifierPatch
	written bool
	lines   strings.Builder
	err     error
}

// String is the text in YAML.
func (t *modifierText) String() string {
	return "version: v1\nresourceModifierRules:\n" + t.lines.String()
}

func (t *modifierText) add(rules ...modifierRule) {
	for _, rule := range rules {
		fmt.Fprintf(&t.lines, "- %s\n", t.json(rule))
	}
}

// addShared adds a rule with the shared patches.
func (t *modifierText) addShared(conditions modifierConditions) {
	patches := "*shared"
	if !t.written {
		patches, t.written = "&shared "+t.json(t.shared), true
	}
	fmt.Fprintf(&t.lines, "- {\"conditions\": %s, \"mergePatches\": %s}\n", t.json(conditions), patches)
}

func (t *modifierText) json(of any) string {
	text, err := json.Marshal(of)
	if err != nil {
		t.err = err
	}
	return string(text)
}

// versionRules restore objects in the preferred version of their folder's resource, which is first, or in their own if that is
// served, too. Those of a served version, and of its folder's kind, get their mark. Resources of a group share a rule.
func versionRules(kinds []Served, into string) []modifierRule {
	preferred, served := map[schema.GroupVersion][]string{}, map[schema.GroupVersion][]string{}
	for _, kind := range kinds {
		for i, name := range kind.Versions {
			version := schema.GroupVersion{Group: kind.Group, Version: name}
			served[version] = append(served[version], kind.Resource)
			if i == 0 {
				preferred[version] = append(preferred[version], kind.Resource)
			}
		}
	}
	var rules []modifierRule
	for _, version := range inOrder(preferred) {
		rules = append(rules, merge(oneOf(preferred[version], version.Group), `{"apiVersion":%q}`, version))
	}
	for _, version := range inOrder(served) {
		rule := remark(oneOf(served[version], version.Group), asItsFolder, into)
		rule.Conditions.Matches = []modifierMatch{{"/apiVersion", version.String()}}
		rule.Patches = append(rule.Patches, modifierOperation{
			Operation: "replace", Path: "/apiVersion", Value: quoted(version.String()),
		})
		rules = append(rules, rule)
	}
	return rules
}

func inOrder(of map[schema.GroupVersion][]string) []schema.GroupVersion {
	return slices.SortedFunc(maps.Keys(of), func(a, b schema.GroupVersion) int { return strings.Compare(a.String(), b.String()) })
}

// oneOf is a glob for some resources of a group.
func oneOf(resources []string, group string) string {
	names := resources[0]
	if len(resources) > 1 {
		names = "{" + strings.Join(resources, ",") + "}"
	}
	return schema.GroupResource{Group: group, Resource: names}.String()
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
