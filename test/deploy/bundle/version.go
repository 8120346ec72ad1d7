package bundle

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const ourGroup = "holdfast.dev"

// object is a part of the ClusterServiceVersion.
type object = map[string]any

// version is a ClusterServiceVersion in the making.
type version struct {
	deployments, clusterPermissions, permissions []any
	owned, required                              []any
	// roles are the rules by kind and name, bound those that a service account of ours has.
	roles map[string][]any
	bound map[string]bool
}

// assemble makes the ClusterServiceVersion, and the objects beside it.
func assemble(base []*unstructured.Unstructured, release string, examples []object) (
	csv *unstructured.Unstructured, beside []*unstructured.Unstructured, err error,
) {
	v := &version{roles: map[string][]any{}, bound: map[string]bool{}}
	for _, o := range base {
		if rules, is := o.Object["rules"].([]any); is {
			v.roles[id(o)] = rules
		}
	}
	for _, o := range base {
		if err := v.add(o); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", id(o), err)
		}
	}
	for _, o := range base {
		if !v.holds(o) && LeftOut[id(o)] == "" {
			unstructured.RemoveNestedField(o.Object, "metadata", "namespace") // OLM's is that of the installation
			beside = append(beside, o)
		}
	}
	csv, err = v.written(release, examples)
	return csv, beside, err
}

func id(o *unstructured.Unstructured) string { return o.GetKind() + "/" + o.GetName() }

// holds reports whether an object is in the ClusterServiceVersion itself.
func (v *version) holds(o *unstructured.Unstructured) bool {
	switch o.GetKind() {
	case "Deployment":
		return true
	case "Role", "ClusterRole":
		return v.bound[id(o)]
	case "RoleBinding", "ClusterRoleBinding":
		kind, name := roleOf(o)
		return v.bound[kind+"/"+name]
	}
	return false
}

// add puts into the ClusterServiceVersion what belongs there.
func (v *version) add(o *unstructured.Unstructured) error {
	if LeftOut[id(o)] == policies {
		return nil
	}
	switch o.GetKind() {
	case "Deployment":
		return v.deploy(o)
	case "RoleBinding", "ClusterRoleBinding":
		return v.permit(o)
	case "CustomResourceDefinition":
		return v.define(o)
	}
	return nil
}

func (v *version) deploy(o *unstructured.Unstructured) error {
	content, err := yaml.Marshal(o.Object["spec"])
	if err != nil {
		return err
	}
	var spec object // the ConfigMap has the name that the administrator gives it, not kustomize's
	if err := yaml.Unmarshal(generatedName.ReplaceAll(content, []byte("name: "+settings+"\n")), &spec); err != nil {
		return err
	}
	labels := object{}
	for name, value := range o.GetLabels() {
		labels[name] = value
	}
	v.deployments = append(v.deployments, object{"name": o.GetName(), "label": labels, "spec": spec})
	return nil
}

var generatedName = regexp.MustCompile(`(?m)name: holdfast-[a-z0-9]{10}\n`)

func roleOf(binding *unstructured.Unstructured) (kind, name string) {
	kind, _, _ = unstructured.NestedString(binding.Object, "roleRef", "kind")
	name, _, _ = unstructured.NestedString(binding.Object, "roleRef", "name")
	return kind, name
}

// permit has OLM bind a role to its account.
func (v *version) permit(binding *unstructured.Unstructured) error {
	subjects, _, _ := unstructured.NestedSlice(binding.Object, "subjects")
	kind, name := roleOf(binding)
	rules := v.roles[kind+"/"+name]
	if len(subjects) != 1 || rules == nil {
		return fmt.Errorf("it must have one subject and a role of ours, and has %d and %s %s", len(subjects), kind, name)
	}
	account, _, _ := unstructured.NestedString(subjects[0].(object), "name")
	permission := object{"serviceAccountName": account, "rules": rules}
	if binding.GetKind() == "ClusterRoleBinding" {
		v.clusterPermissions = append(v.clusterPermissions, permission)
	} else {
		v.permissions = append(v.permissions, permission)
	}
	v.bound[kind+"/"+name] = true
	return nil
}

// define lists a kind as ours or as OADP's.
func (v *version) define(o *unstructured.Unstructured) error {
	group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(o.Object, "spec", "versions")
	if len(versions) != 1 {
		return fmt.Errorf("it must have one version, and has %d", len(versions))
	}
	of := versions[0].(object)
	text, _, _ := unstructured.NestedString(of, "schema", "openAPIV3Schema", "description")
	text, _, _ = strings.Cut(strings.ReplaceAll(text, "\n", " "), ". ")
	entry := object{
		"name": o.GetName(), "version": of["name"], "kind": kind, "displayName": kind,
		"description": strings.TrimSuffix(text, ".") + ".",
	}
	switch {
	case group == ourGroup || strings.HasSuffix(group, "."+ourGroup):
		v.owned = append(v.owned, entry)
	case LeftOut[id(o)] == required:
		v.required = append(v.required, entry)
	}
	return nil
}

// written is the ClusterServiceVersion as a whole.
func (v *version) written(release string, examples []object) (*unstructured.Unstructured, error) {
	csv := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(written, &csv.Object); err != nil {
		return nil, err
	}
	shown, err := json.MarshalIndent(examples, "", "  ")
	if err != nil {
		return nil, err
	}
	csv.SetName("holdfast.v" + release)
	annotations := csv.GetAnnotations()
	annotations["alm-examples"] = string(shown)
	annotations["olm.skipRange"] = "<" + release // from any earlier one
	csv.SetAnnotations(annotations)
	spec := csv.Object["spec"].(object)
	spec["version"] = release
	spec["relatedImages"] = []any{object{"name": "holdfast", "image": annotations["containerImage"]}} // for mirrors
	spec["customresourcedefinitions"] = object{"owned": v.owned, "required": v.required}
	spec["install"] = object{"strategy": "deployment", "spec": object{
		"deployments": v.deployments, "clusterPermissions": v.clusterPermissions, "permissions": v.permissions,
	}}
	return csv, nil
}
