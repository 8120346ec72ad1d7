package deploy_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"holdfast.dev/holdfast/workflows/workflowtest/sample"
)

// A misspelt or impossible value is refused in words that name it, before anything is installed.
func TestTheChartRefusesValuesThatItDoesNotKnow(t *testing.T) {
	for values, want := range map[string]string{
		"wrker: {replicas: 3}":                                                "additional properties 'wrker' not allowed",
		"worker: {replica: 3}":                                                "'/worker': additional properties 'replica' not allowed",
		"watcher: {resources: {limit: {}}}":                                   "'/watcher/resources': additional properties 'limit' not allowed",
		"fdb: {enable: true}":                                                 "'/fdb': additional properties 'enable' not allowed",
		"crds: {keep: 'no'}":                                                  "'/crds/keep': got string, want boolean",
		"temporal: {address: temporal.example.com}":                           "'/temporal/address': 'temporal.example.com' does not match pattern",
		"settings: {TEMPORAL_TLS_CLIENT_KEY_DATA: key}":                       "'/settings/TEMPORAL_TLS_CLIENT_KEY_DATA': false schema",
		"settings: {TEMPORAL_GRPC_META_AUTHORIZATION: token}":                 "'/settings/TEMPORAL_GRPC_META_AUTHORIZATION': false schema",
		"dashboard: {namespace: \"x\\n  finalizers: [evil/x]\"}":              "'/dashboard/namespace': 'x\\n  finalizers: [evil/x]' does not match pattern",
		"image: {tag: '1 #'}":                                                 "'/image/tag': '1 #' does not match pattern",
		"temporal: {tls: {clientCert: true}}":                                 "'/temporal/tls': additional properties 'clientCert' not allowed",
		"clusterID: Production_1":                                             "'/clusterID': 'Production_1' does not match pattern",
		"alerts: {runbookURL: 'https://wiki #'}":                              "'/alerts/runbookURL': 'https://wiki #' does not match pattern",
		"clusterID: fdb-east":                                                 "'/clusterID': 'not' failed",
		"clusterID: drills":                                                   "'/clusterID': 'not' failed",
		"drills: {podSecurityLevels: [none]}":                                 "'/drills/podSecurityLevels/0': value must be one of",
		"drills: {worker: {replica: 3}}":                                      "'/drills/worker': additional properties 'replica' not allowed",
		"settings: {CLUSTER_ID: other}":                                       "'/settings': additional properties 'CLUSTER_ID' not allowed",
		"settings: {TEMPORAL_ADDRESS: 'a:1'}":                                 "'/settings/TEMPORAL_ADDRESS': false schema",
		"worker: {podLabels: {app.kubernetes.io/name: a}}":                    "'/worker/podLabels/app.kubernetes.io~1name': false schema",
		"commonLabels: {app.kubernetes.io/part-of: a}":                        "'/commonLabels/app.kubernetes.io~1part-of': false schema",
		"podDisruptionBudget: {maxUnavailable: most}":                         "'/podDisruptionBudget/maxUnavailable'",
		"worker: {extraEnv: [{name: GOMEMLIMIT}]}":                            "'/worker/extraEnv/0/name': 'not' failed",
		"worker: {podAnnotations: {checksum/settings: a}}":                    "'/worker/podAnnotations/checksum~1settings': false schema",
		"worker: {extraEnv: [{name: HOLDFAST_CLUSTER_ID}]}":                   "'/worker/extraEnv/0/name': 'not' failed",
		"image: {repository: ''}":                                             "image.repository is not set: no image of Holdfast is published",
		"image: {repository: 'a/holdfast:v1'}":                                "'/image/repository': 'a/holdfast:v1' does not match pattern",
		"temporal: {tls: {enabled: true}}\nsettings: {TEMPORAL_TLS: 'false'}": "settings.TEMPORAL_TLS: the chart sets it by temporal.tls",
		"image: {repository: a, digest: 'sha256:" + strings.Repeat("a", 64) + "'}\nfdb: {enabled: true, image: {repository: b}}": "set fdb.image.digest",
	} {
		_, err := tryChart(t, "velero", basesImage+values+"\n")
		if strings.HasPrefix(values, "image") {
			_, err = tryChart(t, "velero", values+"\n")
		}
		require.ErrorContains(t, err, want, values)
	}
}

// What people set most, where it has to arrive.
func TestValuesArrive(t *testing.T) {
	all := renderChart(t, "velero", `
image: {repository: registry.example.com/holdfast, digest: "sha256:`+strings.Repeat("a", 64)+`", pullPolicy: Always}
imagePullSecrets: [{name: registry}]
commonLabels: {team: storage, release: storage}
fdb: {enabled: true, image: {repository: registry.example.com/holdfast-fdb, tag: v0.2.0}, tools: {"7.4": "mirror/fdb:7.4.5"}, toolsRunAsUser: null}
worker:
  replicas: 3
  resources: {limits: {memory: 1Gi}}
  goMemoryLimit: 900MiB
  nodeSelector: {pool: system}
  tolerations: [{key: system, operator: Exists}]
  priorityClassName: system-cluster-critical
  podLabels: {mesh: "on"}
  podAnnotations: {note: "1"}
  serviceAccount: {annotations: {role: backup}}
  extraEnv: [{name: HTTPS_PROXY, value: "http://proxy:3128"}]
temporal: {apiKey: {secretName: temporal-key, key: token}, tls: {secretName: temporal-tls}}
drills: {enabled: true, podSecurityLevels: [baseline, restricted], priorityClasses: [low], finalizers: [example.com/own], worker: {replicas: 1}}
restoresFromTenantsLocations: {allowVolumeSnapshotContents: true, defaultPodSecurityLevel: restricted, securityContextConstraints: [own]}
networkPolicy: {namespace: temporal}
podMonitor: {enabled: true, labels: {release: prometheus}, endpoint: {interval: 30s}}
alerts: {enabled: true, labels: {release: prometheus}, runbookURL: "https://wiki.example/holdfast/"}
dashboard: {enabled: true, namespace: grafana}
extraObjects:
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ .Release.Name }}-extra"}}
  - |
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: text-in-{{ .Release.Namespace }}}
`)
	worker := all.deployment(t, workerName)
	pod := worker.Spec.Template.Spec
	assert.EqualValues(t, 3, *worker.Spec.Replicas)
	assert.Equal(t, "registry.example.com/holdfast@sha256:"+strings.Repeat("a", 64), pod.Containers[0].Image)
	assert.Equal(t, "registry.example.com/holdfast-fdb:v0.2.0", all.deployment(t, fdbName).Spec.Template.Spec.Containers[0].Image)
	assert.Contains(t, texts(all.find(t, "Deployment/"+fdbName).Object), "mirror/fdb:7.4.5")
	assert.Equal(t, map[string]any{"memory": "1Gi", "cpu": "2"}, field(t, all, "Deployment/"+workerName, "resources", "limits"))
	arrived := append(texts(all.find(t, "Deployment/"+workerName).Object), texts(all.find(t, "ServiceAccount/"+workerName).Object)...)
	for _, text := range []string{
		"registry", "system", "system-cluster-critical", "900MiB", "backup", "http://proxy:3128", "temporal-key", "token", "temporal-tls",
		"Always", "storage", "on", "1",
	} {
		assert.Contains(t, arrived, text)
	}
	assert.NotContains(t, fmt.Sprint(all.find(t, "Deployment/"+fdbName).Object), "runAsUser")
	policy := fmt.Sprint(all.find(t, "ValidatingAdmissionPolicy/holdfast-restores").Object["spec"])
	for _, expression := range []string{"expression:true name:allowVolumeSnapshotContents", "expression:'restricted'", "expression:['own']"} {
		assert.Contains(t, policy, expression)
	}
	assert.EqualValues(t, 1, *all.deployment(t, drillsName).Spec.Replicas)
	drills := fmt.Sprint(all.find(t, "ValidatingAdmissionPolicy/holdfast-drills").Object["spec"])
	assert.Contains(t, drills, "expression:['baseline', 'restricted'] name:podSecurityLevels")
	contents := fmt.Sprint(all.find(t, "ValidatingAdmissionPolicy/holdfast-drill-contents").Object["spec"])
	for _, expression := range []string{"expression:['low'] name:priorityClasses", "expression:['example.com/own'] name:finalizers"} {
		assert.Contains(t, contents, expression)
	}
	assert.Equal(t, "temporal", all.find(t, "NetworkPolicy/holdfast-temporal").GetNamespace())
	assert.Contains(t, texts(all.find(t, "PodMonitor/holdfast").Object), "30s")
	assert.Equal(t, "holdfast-extra", all.find(t, "ConfigMap/holdfast-extra").GetName())
	assert.Equal(t, "text-in-velero", all.find(t, "ConfigMap/text-in-velero").GetName())

	var rules map[string]any
	moved := strings.NewReplacer("https://holdfast.dev/runbooks/", "https://wiki.example/holdfast/")
	require.NoError(t, yaml.Unmarshal([]byte(moved.Replace(readFile(t, "deploy", "monitoring", "alerts.yaml"))), &rules))
	alerts := all.find(t, "PrometheusRule/holdfast")
	assert.Equal(t, rules, alerts.Object["spec"])
	assert.Equal(t, "prometheus", alerts.GetLabels()["release"])
	assert.Equal(t, "prometheus", all.find(t, "PodMonitor/holdfast").GetLabels()["release"], "not the common one")
	dashboard := all.find(t, "ConfigMap/holdfast-dashboard")
	assert.Equal(t, "1", dashboard.GetLabels()["grafana_dashboard"])
	assert.Equal(t, "grafana", dashboard.GetNamespace())
	shown, _, err := unstructured.NestedString(dashboard.Object, "data", "holdfast.json")
	require.NoError(t, err)
	assert.JSONEq(t, readFile(t, "deploy", "monitoring", "dashboard.json"), shown)
}

// field is a part of the first container of a Deployment.
func field(t *testing.T, all objects, wanted string, path ...string) any {
	t.Helper()
	containers, _, err := unstructured.NestedSlice(all.find(t, wanted).Object, "spec", "template", "spec", "containers")
	require.NoError(t, err)
	value, found, err := unstructured.NestedFieldNoCopy(containers[0].(map[string]any), path...)
	require.NoError(t, err)
	require.True(t, found)
	return value
}

func TestTheChartPassesLint(t *testing.T) {
	output, err := helm(t.Context(), t, "lint", "--strict", inCheckout(t, "deploy", "chart"), "-f", valuesFile(t, basesImage))
	require.NoError(t, err)
	assert.NotRegexp(t, `WARNING|ERROR`, output)
	assert.Contains(t, output, "1 chart(s) linted, 0 chart(s) failed")
}

func TestChartBundleAndExampleAreOfTheRelease(t *testing.T) {
	release := regexp.MustCompile(`(?m)^RELEASE +:= (v\S+)$`).FindStringSubmatch(readFile(t, "Makefile"))
	require.NotNil(t, release)
	var about struct{ Version, AppVersion string }
	require.NoError(t, yaml.Unmarshal([]byte(readFile(t, "deploy", "chart", "Chart.yaml")), &about))
	assert.Equal(t, release[1], about.AppVersion)
	assert.Equal(t, strings.TrimPrefix(release[1], "v"), about.Version)
	assert.FileExists(t, inCheckout(t, "deploy", "bundle", "manifests", "holdfast."+release[1]+".clusterserviceversion.yaml"))
	assert.Contains(t, readFile(t, "deploy", "overlays", "example", "kustomization.yaml"), "newTag: "+release[1])
}

// others are values where not just any other one will do, by the last name of their path.
var others = map[string]any{
	"digest": "sha256:" + strings.Repeat("b", 64), "pullPolicy": "Always", "address": "other:7233", "goMemoryLimit": "1GiB",
	"settings": map[string]any{"HOLDFAST_OTHER": "value"}, "imagePullSecrets": []any{map[string]any{"name": "other"}},
	"tolerations": []any{map[string]any{"key": "other"}}, "topologySpreadConstraints": []any{map[string]any{"maxSkew": 7}},
	"extraEnv":     []any{map[string]any{"name": "OTHER", "value": "1"}},
	"extraObjects": []any{map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "other"}}},
	"affinity":     map[string]any{"nodeAffinity": map[string]any{}}, "defaultPodSecurityLevel": "restricted",
	"runbookURL": "https://wiki.example", "podSecurityLevels": []any{"baseline"}, "podSecurityVersions": []any{"v1.30"},
	"priorityClasses": []any{"other"}, "finalizers": []any{"example.com/other"},
}

// A value that changes nothing would be a promise that the chart does not keep.
func TestEveryValueHasAnEffect(t *testing.T) {
	sample.InLong(t, "TestValuesArrive", "TestTheChartIsTheKustomization")
	bases := []string{
		basesImage,
		basesImage + "podMonitor: {enabled: true}\nalerts: {enabled: true}\ndashboard: {enabled: true}\nfdb: {enabled: true}\ndrills: {enabled: true}\n",
	}
	var defaults map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(readFile(t, "deploy", "chart", "values.yaml")), &defaults))
	var before []objects
	for _, base := range bases {
		before = append(before, renderChart(t, "velero", base))
	}
	checked := 0
	visitLeaves(nil, defaults, func(path []string, value any) {
		checked++
		t.Run(strings.Join(path, "/"), func(t *testing.T) {
			other := another(path, value)
			assert.True(t, changes(t, bases[0], before[0], path, other) || changes(t, bases[1], before[1], path, other), "nothing in the chart depends on it")
		})
	})
	assert.Greater(t, checked, 80)
}

// visitLeaves visits every value that is no object of values.
func visitLeaves(above []string, values map[string]any, visit func(path []string, value any)) {
	for name, value := range values {
		path := append(slices.Clone(above), name)
		if inner, is := value.(map[string]any); is && len(inner) > 0 {
			visitLeaves(path, inner, visit)
		} else {
			visit(path, value)
		}
	}
}

func another(path []string, value any) any {
	if other, is := others[path[len(path)-1]]; is {
		return other
	}
	switch v := value.(type) {
	case bool:
		return !v
	case float64:
		return v + 1
	case []any:
		return v[1:]
	case map[string]any:
		return map[string]any{"other": "value"}
	}
	return "other"
}

func changes(t *testing.T, base string, before objects, path []string, value any) bool {
	t.Helper()
	var values map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(base), &values))
	inner := values
	for _, name := range path[:len(path)-1] {
		next, is := inner[name].(map[string]any)
		if !is {
			next = map[string]any{}
			inner[name] = next
		}
		inner = next
	}
	inner[path[len(path)-1]] = value
	content, err := yaml.Marshal(values)
	require.NoError(t, err)
	return !assert.ObjectsAreEqual(before, renderChart(t, "velero", string(content)))
}
