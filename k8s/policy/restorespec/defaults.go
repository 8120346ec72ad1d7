package restorespec

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Defaults are the rules of the resource modifier that the administrator has Velero apply by default, from version 1.19 on.
// Velero does not apply it to a restore with a modifier of its own, as each from a tenant's storage location is. So ours begins
// with these rules.
type Defaults struct{ rules []modifierRule }

// ReadDefaults reads the data of a ConfigMap as Velero does. An error says what is wrong, without words of the ConfigMap: tenants
// may read it.
func ReadDefaults(data map[string]string) (Defaults, error) {
	if len(data) != 1 {
		return Defaults{}, fmt.Errorf("it has %d keys, and Velero reads one", len(data))
	}
	var modifier struct {
		Version               string         `json:"version"`
		ResourceModifierRules []modifierRule `json:"resourceModifierRules"`
	}
	for _, text := range data {
		if yaml.UnmarshalStrict([]byte(text), &modifier) != nil {
			return Defaults{}, errors.New("it is not the YAML of a resource modifier, or has fields that are not known here")
		}
	}
	switch rules := modifier.ResourceModifierRules; {
	case !strings.EqualFold(modifier.Version, "v1"):
		return Defaults{}, errors.New("its version is not v1")
	case len(rules) == 0:
		return Defaults{}, errors.New("it has no rule")
	}
	for i, rule := range modifier.ResourceModifierRules {
		if problem := rule.problem(); problem != "" {
			return Defaults{}, fmt.Errorf("its rule %d %s", i+1, problem)
		}
	}
	return Defaults{modifier.ResourceModifierRules}, nil
}

// problem is why Velero refuses a rule, and a resource modifier that has it; empty if it does not.
func (r modifierRule) problem() string {
	kinds := 0
	for _, patches := range []int{len(r.Patches), len(r.MergePatches), len(r.StrategicPatches)} {
		if patches > 0 {
			kinds++
		}
	}
	switch {
	case r.Conditions.GroupResource == "":
		return "has no groupResource"
	case kinds > 1:
		return "has patches of several kinds"
	}
	for _, patch := range r.Patches {
		known := slices.Contains([]string{"add", "remove", "replace", "test", "move", "copy"}, strings.ToLower(patch.Operation))
		if !known || patch.Path == "" {
			return "has a patch without a path, or of an unknown operation"
		}
	}
	return ""
}
