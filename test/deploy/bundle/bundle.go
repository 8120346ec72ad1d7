package bundle

import (
	_ "embed" // the part of the ClusterServiceVersion that is written by hand
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

const (
	header  = "# Written by `make generate` from deploy/base: change that.\n"
	channel = "candidate-v0"
	// settings is the ConfigMap that the administrator makes. A bundle's own would be reset by every upgrade.
	settings = "holdfast"
)

// LeftOut are the objects of deploy/base that the bundle does not have, by kind and name, and why.
var LeftOut = map[string]string{
	"ConfigMap/holdfast":              "the administrator makes it",
	"NetworkPolicy/holdfast-temporal": "older releases of OLM refuse a bundle with one: docs/install.md#who-reaches-temporal",
	"ServiceAccount/holdfast-worker":  byOLM, "ServiceAccount/holdfast-watcher": byOLM,
	"ValidatingAdmissionPolicy/holdfast-decided-by": policies, "ValidatingAdmissionPolicyBinding/holdfast-decided-by": policies,
	"ValidatingAdmissionPolicy/holdfast-restores": policies, "ValidatingAdmissionPolicyBinding/holdfast-restores": policies,
	"ValidatingAdmissionPolicy/holdfast-default-plans":        policies,
	"ValidatingAdmissionPolicyBinding/holdfast-default-plans": policies,
	"ServiceAccount/holdfast-restores":                        policies, "ClusterRoleBinding/holdfast-restores": policies,
	"CustomResourceDefinition/nonadminbackups.oadp.openshift.io":                required,
	"CustomResourceDefinition/nonadminrestores.oadp.openshift.io":               required,
	"CustomResourceDefinition/nonadminbackupstoragelocations.oadp.openshift.io": required,
	"CustomResourceDefinition/nonadmindownloadrequests.oadp.openshift.io":       required,
	"CustomResourceDefinition/nonadminbackupstoragelocationapprovalrequests.oadp.openshift.io": "OADP has no such kind, and its " +
		"group is not ours to own: it is applied with the policies",
}

const (
	byOLM    = "OLM makes it of the ClusterServiceVersion's permissions"
	policies = "OLM installs no admission policies: these, and what they need, are applied"
	required = "OADP's bundle has it: it is required"
)

//go:embed clusterserviceversion.yaml
var written []byte

// Write writes deploy/bundle anew.
func Write(deploy string) error {
	base, err := render(filepath.Join(deploy, "base"))
	if err != nil {
		return fmt.Errorf("render deploy/base: %w", err)
	}
	var chart struct{ Version string }
	if err := read(filepath.Join(deploy, "chart", "Chart.yaml"), &chart); err != nil {
		return err
	}
	var examples []object // of the kinds that the bundle owns
	for _, sample := range []string{"backupplan.yaml", "restoredrill.yaml"} {
		var example object
		if err := read(filepath.Join(deploy, "samples", sample), &example); err != nil {
			return err
		}
		examples = append(examples, example)
	}
	version, beside, err := assemble(base, chart.Version, examples)
	if err != nil {
		return err
	}
	files := map[string][]byte{
		"metadata/annotations.yaml": []byte(header + "annotations:\n" + metadata("  ", ": ")),
		"bundle.Dockerfile": []byte(header + "FROM scratch\n\n" + metadata("LABEL ", "=") +
			"\nCOPY manifests /manifests/\nCOPY metadata /metadata/\n"),
	}
	for _, object := range append(beside, version) {
		content, err := yaml.Marshal(object.Object)
		if err != nil {
			return err
		}
		files["manifests/"+object.GetName()+"."+strings.ToLower(object.GetKind())+".yaml"] = append([]byte(header), content...)
	}
	return replace(filepath.Join(deploy, "bundle"), files)
}

func render(dir string) ([]*unstructured.Unstructured, error) {
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, resource := range resources.Resources() {
		content, err := resource.AsYAML()
		if err != nil {
			return nil, err
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(content, &object.Object); err != nil {
			return nil, err
		}
		if object.GetKind() == "ConfigMap" { // without the hash of its content
			object.SetName(settings)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

func read(file string, into any) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := yaml.Unmarshal(content, into); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// metadata are the annotations of a bundle, which are also its image's labels.
func metadata(before, between string) (text string) {
	const prefix = "operators.operatorframework.io.bundle."
	for _, each := range [][2]string{
		{"mediatype.v1", "registry+v1"},
		{"manifests.v1", "manifests/"},
		{"metadata.v1", "metadata/"},
		{"package.v1", "holdfast"},
		{"channels.v1", channel},
		{"channel.default.v1", channel},
	} {
		text += before + prefix + each[0] + between + each[1] + "\n"
	}
	return text
}

func replace(dir string, files map[string][]byte) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	for name, content := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
