// Package deploy_test checks what an operator installs: the kustomization, the samples, the image file and the compose file,
// as text, against the programs themselves, and on a real API server.
package deploy_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/tools"
)

// The Deployments, which are named like their service accounts; that of FoundationDB is in the component.
const (
	workerName  = "holdfast-worker"
	watcherName = "holdfast-watcher"
	fdbName     = "holdfast-fdb"
)

// objects are what a kustomization renders to.
type objects []*unstructured.Unstructured

// inCheckout returns the path of a file of this checkout.
func inCheckout(t *testing.T, elements ...string) string {
	t.Helper()
	root, err := tools.Root()
	require.NoError(t, err)
	return filepath.Join(append([]string{root}, elements...)...)
}

// render does what `kubectl kustomize` does, with its load restrictions.
func render(t *testing.T, dir string) objects {
	t.Helper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	require.NoError(t, err)
	content, err := resources.AsYaml()
	require.NoError(t, err)
	read, err := env.ReadObjects(content)
	require.NoError(t, err)
	return read
}

// renderOverlay renders a kustomization made of these lines; BASE stands for deploy/.
func renderOverlay(t *testing.T, kustomization string) objects {
	t.Helper()
	dir := t.TempDir()
	deploy, err := filepath.Rel(realPath(t, dir), realPath(t, inCheckout(t, "deploy")))
	require.NoError(t, err)
	content := strings.ReplaceAll(kustomization, "BASE", deploy)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(content), 0o600))
	return render(t, dir)
}

func realPath(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.EvalSymlinks(path)
	require.NoError(t, err)
	return path
}

func readFile(t *testing.T, elements ...string) string {
	t.Helper()
	content, err := os.ReadFile(inCheckout(t, elements...))
	require.NoError(t, err)
	return string(content)
}

// readObjects reads all objects of a folder's YAML files, kustomizations left out.
func readObjects(t *testing.T, dir string) objects {
	t.Helper()
	files, err := filepath.Glob(inCheckout(t, dir, "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var all objects
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		read, err := env.ReadObjects(content)
		require.NoError(t, err, file)
		all = append(all, read...)
	}
	return all
}

// contentHash is what kustomize appends to the name of a generated ConfigMap.
var contentHash = regexp.MustCompile(`-[a-z0-9]{10}$`)

// id names an object in a list: kind and name, without the hash of a generated name.
func id(o *unstructured.Unstructured) string {
	name := o.GetName()
	if o.GetKind() == "ConfigMap" {
		name = contentHash.ReplaceAllString(name, "")
	}
	return o.GetKind() + "/" + name
}

func (all objects) ids() []string {
	var ids []string
	for _, o := range all {
		ids = append(ids, id(o))
	}
	return ids
}

func (all objects) ofKind(kinds ...string) objects {
	var found objects
	for _, o := range all {
		for _, kind := range kinds {
			if o.GetKind() == kind {
				found = append(found, o)
			}
		}
	}
	return found
}

func (all objects) find(t *testing.T, wanted string) *unstructured.Unstructured {
	t.Helper()
	for _, o := range all {
		if id(o) == wanted {
			return o
		}
	}
	require.Fail(t, wanted+" is not among the objects")
	return nil
}

// oadps reports whether OADP installs a kind, too. Of its group only the approval requests are ours.
func oadps(o *unstructured.Unstructured) bool {
	return o.GetKind() == "CustomResourceDefinition" && strings.HasSuffix(o.GetName(), ".oadp.openshift.io") &&
		!strings.HasPrefix(o.GetName(), "nonadminbackupstoragelocationapprovalrequests.")
}

// into converts strictly: a field that the kind does not have is an error.
func into[T any](t *testing.T, o *unstructured.Unstructured) *T {
	t.Helper()
	var typed T
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, &typed, true))
	return &typed
}

func (all objects) deployment(t *testing.T, name string) *appsv1.Deployment {
	t.Helper()
	return into[appsv1.Deployment](t, all.find(t, "Deployment/"+name))
}

// settings returns the ConfigMap that is the processes' environment.
func (all objects) settings(t *testing.T) *corev1.ConfigMap {
	t.Helper()
	return into[corev1.ConfigMap](t, all.find(t, "ConfigMap/holdfast"))
}
