package deploy_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/tools"
)

// basesImage is the image of deploy/base as a value: the chart has none.
const basesImage = "image: {repository: registry.invalid/holdfast, tag: unset}\n"

var helmBinary = sync.OnceValues(func() (string, error) { return tools.Path(context.Background(), tools.Helm) })

// helm runs the real helm, without anything of the user who runs the test.
func helm(ctx context.Context, t *testing.T, args ...string) (string, error) {
	t.Helper()
	if testing.Short() {
		t.Skip("runs helm")
	}
	binary, err := helmBinary()
	require.NoError(t, err)
	command := exec.CommandContext(ctx, binary, args...)
	command.Env = []string{"HOME=" + t.TempDir()}
	output, err := command.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("helm %s: %w: %s", strings.Join(args, " "), err, output)
	}
	return string(output), err
}

// valuesFile writes values down for -f.
func valuesFile(t *testing.T, values string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "values.yaml")
	require.NoError(t, os.WriteFile(file, []byte(values), 0o600))
	return file
}

// tryChart renders the chart, its tests left out.
func tryChart(t *testing.T, namespace, values string) (objects, error) {
	t.Helper()
	output, err := helm(t.Context(), t, "template", "holdfast", inCheckout(t, "deploy", "chart"), "--skip-tests", "--kube-version", "1.30",
		"--namespace", namespace, "-f", valuesFile(t, values))
	if err != nil {
		return nil, err
	}
	read, err := env.ReadObjects([]byte(output))
	require.NoError(t, err)
	return read, nil
}

func renderChart(t *testing.T, namespace, values string) objects {
	t.Helper()
	all, err := tryChart(t, namespace, values)
	require.NoError(t, err)
	return all
}

// exampleValues are those of deploy/overlays/example with everything that it offers.
const exampleValues = `
image: {repository: registry.example.com/holdfast, tag: v0.1.0}
clusterID: production-1
temporal:
  address: temporal.example.com:7233
  namespace: backups
  tls: {enabled: true, serverCA: true, clientCertificate: true}
payloadEncryption: {enabled: true}
settings:
  TEMPORAL_DEPLOYMENT_NAME: holdfast-production-1
  TEMPORAL_WORKER_BUILD_ID: v0.1.0
  TEMPORAL_FDB_DEPLOYMENT_NAME: holdfast-production-1-fdb
fdb: {enabled: true}
`

// The chart and kustomize install the same, object by object: `meant` lists what differs.
func TestTheChartIsTheKustomization(t *testing.T) {
	const resources = "resources: [BASE/base]\n"
	tests := map[string]struct {
		overlay, values string
		namespace       string // the base's if empty
	}{
		"base": {overlay: resources, values: basesImage},
		"pod-monitor": {
			overlay: resources + "components: [BASE/components/pod-monitor]\n", values: basesImage + "podMonitor: {enabled: true}\n",
		},
		"fdb":    {overlay: resources + "components: [BASE/components/fdb]\n", values: basesImage + "fdb: {enabled: true}\n"},
		"drills": {overlay: withDrills, values: basesImage + "drills: {enabled: true}\n"},
		"without OADP's kinds": {
			overlay: resources + "components: [BASE/components/without-crds]\n", values: basesImage + "crds: {oadp: false}\n",
		},
		"the whole example": {
			overlay: everythingOfTheExample(t) + "components: [BASE/components/fdb]\n", namespace: "velero", values: exampleValues,
		},
	}
	var overlays []string
	for title, test := range tests {
		overlays = append(overlays, test.overlay)
		t.Run(title, func(t *testing.T) {
			namespace := test.namespace
			if namespace == "" {
				namespace = env.OADPNamespace
			}
			want, got := meant(t, renderOverlay(t, test.overlay)), meant(t, renderChart(t, namespace, test.values))
			require.ElementsMatch(t, slices.Collect(maps.Keys(want)), slices.Collect(maps.Keys(got)))
			for name, object := range want {
				assert.Equal(t, object, got[name], name)
			}
		})
	}
	components, err := os.ReadDir(inCheckout(t, "deploy", "components"))
	require.NoError(t, err)
	for _, component := range components {
		if component.Name() == "rollouts" {
			continue // Temporal's worker controller is used with kustomize: docs/temporal.md
		}
		assert.Contains(t, strings.Join(overlays, "\n"), "components/"+component.Name(), "a component that the chart may lack")
	}
}

// helmsLabels are those that Helm's users expect of a chart, besides part-of.
var helmsLabels = []string{"app.kubernetes.io/instance", "app.kubernetes.io/version", "app.kubernetes.io/managed-by", "helm.sh/chart"}

// generatedName is kustomize's name of the ConfigMap of settings, which follows the content.
var generatedName = regexp.MustCompile(`^holdfast-[a-z0-9]{10}$`)

// meant takes away the differences between the chart and kustomize that are meant.
func meant(t *testing.T, all objects) map[string]map[string]any {
	t.Helper()
	left := map[string]map[string]any{}
	for _, o := range all {
		o = o.DeepCopy()
		if slices.Contains(addedNamespace, o.GetKind()) { // kustomize does not know that it has none
			o.SetNamespace("")
		}
		for _, label := range helmsLabels {
			unstructured.RemoveNestedField(o.Object, "metadata", "labels", label)
		}
		drop(o.Object, "helm.sh/resource-policy", "metadata", "annotations")               // Helm alone removes what a release has no more
		drop(o.Object, "checksum/settings", "spec", "template", "metadata", "annotations") // instead of kustomize's generated name
		normal := normalized(o.Object).(map[string]any)
		name := fmt.Sprintf("%s/%s in %s", o.GetKind(), generatedName.ReplaceAllString(o.GetName(), "holdfast"), o.GetNamespace())
		require.NotContains(t, left, name, "twice")
		left[name] = normal
	}
	return left
}

// drop removes an annotation, and the annotations if it is the only one.
func drop(object map[string]any, annotation string, path ...string) {
	unstructured.RemoveNestedField(object, append(slices.Clone(path), annotation)...)
	if left, found, _ := unstructured.NestedMap(object, path...); found && len(left) == 0 {
		unstructured.RemoveNestedField(object, path...)
	}
}

// normalized names the ConfigMap of settings without its hash.
func normalized(value any) any {
	switch v := value.(type) {
	case string:
		return generatedName.ReplaceAllString(v, "holdfast")
	case []any:
		for i := range v {
			v[i] = normalized(v[i])
		}
	case map[string]any:
		for key, entry := range v {
			v[key] = normalized(entry)
		}
	}
	return value
}
