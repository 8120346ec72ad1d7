package deploy_test

import (
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
)

func TestPodsAreProbedBoundedAndConfined(t *testing.T) {
	base := render(t, inCheckout(t, "deploy", "base"))
	for _, name := range []string{workerName, watcherName} {
		t.Run(name, func(t *testing.T) {
			deployment := base.deployment(t, name)
			assert.EqualValues(t, 2, *deployment.Spec.Replicas)
			pod := deployment.Spec.Template.Spec
			assert.True(t, *pod.SecurityContext.RunAsNonRoot)
			assert.Equal(t, corev1.SeccompProfileTypeRuntimeDefault, pod.SecurityContext.SeccompProfile.Type)
			assert.Nil(t, pod.SecurityContext.RunAsUser, "OpenShift refuses a user that is not the namespace's")
			assert.Empty(t, pod.InitContainers)
			require.Len(t, pod.Containers, 1)
			container := pod.Containers[0]

			assert.True(t, *container.SecurityContext.ReadOnlyRootFilesystem)
			assert.False(t, *container.SecurityContext.AllowPrivilegeEscalation)
			assert.Equal(t, []corev1.Capability{"ALL"}, container.SecurityContext.Capabilities.Drop)
			assert.Empty(t, container.SecurityContext.Capabilities.Add)
			for _, mount := range container.VolumeMounts {
				assert.True(t, mount.ReadOnly, mount.Name)
			}

			assert.Equal(t, "/healthz", container.LivenessProbe.HTTPGet.Path)
			assert.Equal(t, "/readyz", container.ReadinessProbe.HTTPGet.Path)
			for _, probe := range []*corev1.Probe{container.LivenessProbe, container.ReadinessProbe} {
				assert.Equal(t, "health", probe.HTTPGet.Port.String())
			}
			for _, resource := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
				request, limit := container.Resources.Requests[resource], container.Resources.Limits[resource]
				assert.Positive(t, request.Sign(), resource)
				assert.Negative(t, request.Cmp(limit), "%s: must be room above the request", resource)
			}
		})
	}
}

// A worker that is told to stop finishes its activities.
func TestTheGracePeriodIsLongerThanTheWorkersOwn(t *testing.T) {
	match := regexp.MustCompile(`stopTimeout = (\d+) \* time\.Second`).FindStringSubmatch(readFile(t, "worker", "run.go"))
	require.NotNil(t, match)
	own, err := time.ParseDuration(match[1] + "s")
	require.NoError(t, err)
	pod := render(t, inCheckout(t, "deploy", "base")).deployment(t, workerName).Spec.Template.Spec
	given := time.Duration(*pod.TerminationGracePeriodSeconds) * time.Second
	assert.GreaterOrEqual(t, given, own+5*time.Second)
}

// While Temporal is away no Pod is ready; a node must still be drained.
func TestABudgetNeverHoldsUpADrainForPodsThatAreNotReady(t *testing.T) {
	base := render(t, inCheckout(t, "deploy", "base"))
	for _, name := range []string{workerName, watcherName} {
		budget := into[policyv1.PodDisruptionBudget](t, base.find(t, "PodDisruptionBudget/"+name))
		assert.Equal(t, 1, budget.Spec.MaxUnavailable.IntValue())
		require.NotNil(t, budget.Spec.UnhealthyPodEvictionPolicy)
		assert.Equal(t, policyv1.AlwaysAllow, *budget.Spec.UnhealthyPodEvictionPolicy)
	}
}

// Without the Secrets the Pods start all the same, and nothing of a Secret is in a command or a plain value.
func TestSecretsAreOptionalAndMounted(t *testing.T) {
	base := render(t, inCheckout(t, "deploy", "base"))
	for _, name := range []string{workerName, watcherName} {
		pod := base.deployment(t, name).Spec.Template.Spec
		wanted := map[string]string{
			"holdfast-temporal":     "/etc/holdfast/temporal",
			"holdfast-payload-keys": "/etc/holdfast/payload-keys",
		}
		paths := map[string]string{}
		for _, mount := range pod.Containers[0].VolumeMounts {
			paths[mount.Name] = mount.MountPath
		}
		mounted := map[string]string{}
		for _, volume := range pod.Volumes {
			require.NotNil(t, volume.Secret, volume.Name)
			assert.True(t, *volume.Secret.Optional, volume.Name)
			mounted[volume.Secret.SecretName] = paths[volume.Name]
		}
		assert.Equal(t, wanted, mounted)
		for _, variable := range pod.Containers[0].Env {
			if variable.Name != "TEMPORAL_API_KEY" {
				continue
			}
			assert.Empty(t, variable.Value)
			assert.Equal(t, "holdfast-temporal", variable.ValueFrom.SecretKeyRef.Name)
			assert.True(t, *variable.ValueFrom.SecretKeyRef.Optional)
		}
	}
}
