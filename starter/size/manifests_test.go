package size

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
)

// The model reckons with the CPU limits, and the number of replicas, of the manifests.
func TestTheModelHasTheLimitsOfTheManifests(t *testing.T) {
	for file, cores := range map[string]float64{"worker.yaml": workerCores, "watcher.yaml": watcherCores} {
		text, err := os.ReadFile("../../deploy/base/" + file)
		require.NoError(t, err)
		var deployment appsv1.Deployment
		require.NoError(t, yaml.Unmarshal(text, &deployment))
		assert.InDelta(t, cores, deployment.Spec.Template.Spec.Containers[0].Resources.Limits.Cpu().AsApproximateFloat64(), 0, file)
		assert.EqualValues(t, leastReplicas, *deployment.Spec.Replicas, file)
	}
}
