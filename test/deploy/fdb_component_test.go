package deploy_test

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const withFDB = "resources: [BASE/base]\ncomponents: [BASE/components/fdb]\n"

// releaseOf is the major.minor of an image's tag, after which the folder of its tools is named.
func releaseOf(t *testing.T, image string) string {
	t.Helper()
	found := regexp.MustCompile(`^foundationdb/fdb-kubernetes-monitor:(\d+\.\d+)\.\d+$`).FindStringSubmatch(image)
	require.NotNil(t, found, image)
	return found[1]
}

func mountOf(t *testing.T, container corev1.Container, volume string) corev1.VolumeMount {
	t.Helper()
	at := slices.IndexFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == volume })
	require.GreaterOrEqual(t, at, 0, "%s does not mount %s", container.Name, volume)
	return container.VolumeMounts[at]
}

func TestTheComponentBringsFoundationDBsTools(t *testing.T) {
	pod := renderOverlay(t, withFDB).deployment(t, fdbName).Spec.Template.Spec
	worker := pod.Containers[0]
	variable := slices.IndexFunc(worker.Env, func(v corev1.EnvVar) bool { return v.Name == "HOLDFAST_FDB_BIN_DIR" })
	require.GreaterOrEqual(t, variable, 0)
	assert.Contains(t, askProgram(t, worker.Command...).flags, "fdb-bin-dir")
	tools := mountOf(t, worker, "fdb-tools")
	assert.Equal(t, worker.Env[variable].Value, tools.MountPath)
	assert.True(t, tools.ReadOnly, "what is run may not be written by whom runs it")

	var releases []string
	for _, init := range pod.InitContainers {
		release := releaseOf(t, init.Image)
		releases = append(releases, release)
		assert.Equal(t, "fdb-tools-"+strings.ReplaceAll(release, ".", "-"), init.Name)
		assert.Subset(t, init.Args, []string{"--mode=init", "--copy-binary=fdbbackup", "--copy-binary=fdbrestore", "--copy-binary=fdbcli"})
		assert.Contains(t, init.Args, "--output-dir="+mountOf(t, init, "fdb-tools").MountPath)

		assert.True(t, *init.SecurityContext.ReadOnlyRootFilesystem)
		assert.False(t, *init.SecurityContext.AllowPrivilegeEscalation)
		assert.Equal(t, []corev1.Capability{"ALL"}, init.SecurityContext.Capabilities.Drop)
		assert.Positive(t, *init.SecurityContext.RunAsUser, "the image's user has a name only")
		assert.NotEmpty(t, init.Resources.Limits)
	}
	assert.NotEmpty(t, releases)
	assert.Len(t, slices.Compact(slices.Sorted(slices.Values(releases))), len(releases), "one of each")
}

// The tools' secrets are in files for as long as a tool runs.
func TestTheToolsSecretsAreInMemory(t *testing.T) {
	pod := renderOverlay(t, withFDB).deployment(t, fdbName).Spec.Template.Spec
	assert.Equal(t, "/tmp", path.Clean(mountOf(t, pod.Containers[0], "tmp").MountPath))
	at := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == "tmp" })
	require.GreaterOrEqual(t, at, 0)
	require.NotNil(t, pod.Volumes[at].EmptyDir)
	assert.Equal(t, corev1.StorageMediumMemory, pod.Volumes[at].EmptyDir.Medium)
	require.NotNil(t, pod.Volumes[at].EmptyDir.SizeLimit)
	assert.Negative(t, pod.Volumes[at].EmptyDir.SizeLimit.Cmp(pod.Containers[0].Resources.Limits[corev1.ResourceMemory]),
		"what is in it counts as the worker's memory")
}

// What an installation without FoundationDB does not have.
func TestTheComponentAddsFoundationDBAndChangesTheWatcherAlone(t *testing.T) {
	base, with := render(t, inCheckout(t, "deploy", "base")), renderOverlay(t, withFDB)
	var added []string
	for _, o := range with {
		at := slices.IndexFunc(base, func(b *unstructured.Unstructured) bool { return id(b) == id(o) })
		switch {
		case at < 0:
			added = append(added, id(o))
		case id(o) != "Deployment/"+watcherName:
			assert.Equal(t, base[at].Object, o.Object, id(o))
		}
	}
	assert.ElementsMatch(t, []string{
		"CustomResourceDefinition/foundationdbbackups.fdb.holdfast.dev",
		"CustomResourceDefinition/foundationdbdrills.fdb.holdfast.dev",
		"CustomResourceDefinition/foundationdbrestores.fdb.holdfast.dev",
		"ServiceAccount/holdfast-fdb", "ClusterRole/holdfast-fdb", "ClusterRoleBinding/holdfast-fdb",
		"ClusterRole/holdfast-watcher-fdb", "ClusterRoleBinding/holdfast-watcher-fdb",
		"ClusterRole/holdfast-tenant-fdb-edit", "ClusterRole/holdfast-tenant-fdb-view",
		"Deployment/holdfast-fdb", "PodDisruptionBudget/holdfast-fdb",
	}, added)
	for _, o := range base {
		assert.NotContains(t, strings.Join(texts(o.Object["rules"]), " "), "foundationdb", id(o))
	}
	watcher := with.deployment(t, watcherName)
	assert.Equal(t, []string{"--serve=all"}, watcher.Spec.Template.Spec.Containers[0].Args)
	watcher.Spec.Template.Spec.Containers[0].Args = []string{"--serve=velero"}
	assert.Equal(t, base.deployment(t, watcherName), watcher)
	for _, o := range with {
		assert.Equal(t, "holdfast", o.GetLabels()["app.kubernetes.io/part-of"], id(o))
	}
}

// Nobody who runs the worker of Velero's half creates Pods or Deployments.
func TestOnlyFoundationDBsWorkerCreatesWorkloads(t *testing.T) {
	for _, o := range renderOverlay(t, withFDB).ofKind("ClusterRole", "Role") {
		if strings.HasPrefix(o.GetName(), "holdfast-tenant") {
			continue
		}
		for _, rule := range into[rbacv1.ClusterRole](t, o).Rules {
			workloads := slices.Contains(rule.Resources, "pods") || slices.Contains(rule.Resources, "deployments")
			if workloads && slices.Contains(rule.Verbs, "create") {
				assert.Equal(t, "ClusterRole/holdfast-fdb", id(o))
			}
		}
	}
}

// The worker of FoundationDB is as confined as the other, and takes the same settings and its own.
func TestTheWorkerOfFoundationDBIsLikeTheOther(t *testing.T) {
	all := renderOverlay(t, withFDB)
	worker, fdb := all.deployment(t, workerName).Spec, all.deployment(t, fdbName).Spec
	assert.Equal(t, worker.Replicas, fdb.Replicas)
	assert.Equal(t, worker.Strategy, fdb.Strategy)
	assert.Equal(t, map[string]string{"app.kubernetes.io/name": fdbName}, fdb.Selector.MatchLabels)
	budget := into[policyv1.PodDisruptionBudget](t, all.find(t, "PodDisruptionBudget/"+fdbName))
	assert.Equal(t, fdb.Selector, budget.Spec.Selector)
	before, after := worker.Template.Spec, fdb.Template.Spec
	assert.Equal(t, before.SecurityContext, after.SecurityContext)
	assert.Equal(t, before.TerminationGracePeriodSeconds, after.TerminationGracePeriodSeconds)
	container := after.Containers[0]
	assert.Equal(t, []string{"--serve=fdb"}, container.Args)
	assert.Equal(t, []string{"--serve=velero"}, before.Containers[0].Args)
	assert.Equal(t, before.Containers[0].Command, container.Command)
	assert.Equal(t, before.Containers[0].SecurityContext, container.SecurityContext)
	assert.Equal(t, before.Containers[0].LivenessProbe, container.LivenessProbe)
	assert.Equal(t, before.Containers[0].ReadinessProbe, container.ReadinessProbe)
	assert.Subset(t, container.Env, before.Containers[0].Env)
	assert.Subset(t, container.VolumeMounts, before.Containers[0].VolumeMounts)
	assert.Equal(t, before.Containers[0].Image, container.Image, "the image is the overlay's to say")
	assert.Equal(t, before.Containers[0].EnvFrom, container.EnvFrom)
}

// Its versions are not the other worker's; see docs/temporal.md.
func TestAnOverlayNamesTheDeploymentOfTheWorkerOfFoundationDB(t *testing.T) {
	example := readFile(t, "deploy", "overlays", "example", "kustomization.yaml")
	assert.Contains(t, example, "TEMPORAL_FDB_DEPLOYMENT_NAME=holdfast-production-1-fdb")
	for _, settings := range []string{"", "configMapGenerator:\n  - {name: holdfast, behavior: merge, literals: [A=B]}\n"} {
		all := renderOverlay(t, withFDB+settings)
		variables := all.deployment(t, fdbName).Spec.Template.Spec.Containers[0].Env
		at := slices.IndexFunc(variables, func(v corev1.EnvVar) bool { return v.Name == "TEMPORAL_DEPLOYMENT_NAME" })
		require.GreaterOrEqual(t, at, 0)
		key := variables[at].ValueFrom.ConfigMapKeyRef
		assert.Equal(t, "TEMPORAL_FDB_DEPLOYMENT_NAME", key.Key)
		assert.Equal(t, all.settings(t).Name, key.Name, "the one that follows its content")
		assert.True(t, *key.Optional)
	}
}
