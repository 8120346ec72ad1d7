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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const withFDBTools = "resources: [BASE/base]\ncomponents: [BASE/components/fdb-tools]\n"

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

func TestTheComponentBringsFoundationDBsToolsToTheWorkers(t *testing.T) {
	pod := renderOverlay(t, withFDBTools).deployment(t, workerName).Spec.Template.Spec
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
	pod := renderOverlay(t, withFDBTools).deployment(t, workerName).Spec.Template.Spec
	assert.Equal(t, "/tmp", path.Clean(mountOf(t, pod.Containers[0], "tmp").MountPath))
	at := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == "tmp" })
	require.GreaterOrEqual(t, at, 0)
	require.NotNil(t, pod.Volumes[at].EmptyDir)
	assert.Equal(t, corev1.StorageMediumMemory, pod.Volumes[at].EmptyDir.Medium)
	require.NotNil(t, pod.Volumes[at].EmptyDir.SizeLimit)
	assert.Negative(t, pod.Volumes[at].EmptyDir.SizeLimit.Cmp(pod.Containers[0].Resources.Limits[corev1.ResourceMemory]),
		"what is in it counts as the worker's memory")
}

func TestTheComponentChangesTheWorkersAlone(t *testing.T) {
	base, with := render(t, inCheckout(t, "deploy", "base")), renderOverlay(t, withFDBTools)
	others := func(all objects) objects {
		return slices.DeleteFunc(slices.Clone(all), func(o *unstructured.Unstructured) bool { return id(o) == "Deployment/"+workerName })
	}
	assert.Len(t, others(base), len(base)-1)
	assert.ElementsMatch(t, others(base), others(with))
	before, after := base.deployment(t, workerName).Spec.Template.Spec, with.deployment(t, workerName).Spec.Template.Spec
	assert.Equal(t, before.SecurityContext, after.SecurityContext)
	assert.Equal(t, before.Containers[0].SecurityContext, after.Containers[0].SecurityContext)
	assert.Subset(t, after.Containers[0].Env, before.Containers[0].Env)
	assert.Subset(t, after.Containers[0].VolumeMounts, before.Containers[0].VolumeMounts)
	assert.Equal(t, before.Containers[0].Image, after.Containers[0].Image, "the image is the overlay's to say")
}
