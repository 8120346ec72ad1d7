package size

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// The model reckons with the limits, and the number of replicas, of the manifests.
func TestTheModelHasTheLimitsOfTheManifests(t *testing.T) {
	for file, least := range map[string]Deployment{
		"worker.yaml":  {Cores: workerCores, GoMemLimitMiB: leastWorker.GoMemLimitMiB, MemoryMiB: leastWorker.MemoryMiB},
		"watcher.yaml": {Cores: watcherCores, GoMemLimitMiB: leastWatcher.GoMemLimitMiB, MemoryMiB: leastWatcher.MemoryMiB},
	} {
		text, err := os.ReadFile("../../deploy/base/" + file)
		require.NoError(t, err)
		var deployment appsv1.Deployment
		require.NoError(t, yaml.Unmarshal(text, &deployment))
		container := deployment.Spec.Template.Spec.Containers[0]
		assert.InDelta(t, least.Cores, container.Resources.Limits.Cpu().AsApproximateFloat64(), 0, file)
		assert.EqualValues(t, least.MemoryMiB, container.Resources.Limits.Memory().Value()/mib, file)
		assert.Contains(t, container.Env, corev1.EnvVar{Name: "GOMEMLIMIT", Value: fmt.Sprintf("%dMiB", least.GoMemLimitMiB)}, file)
		assert.EqualValues(t, leastReplicas, *deployment.Spec.Replicas, file)
	}
}
