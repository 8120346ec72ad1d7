package deploy_test

import (
	"fmt"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const kubeconfigVariable = "HOLDFAST_KUBECONFIG_FILE"

// loadCompose loads docker-compose.yaml as `docker compose` does, with these variables and no others.
func loadCompose(t *testing.T, variables ...string) (*types.Project, error) {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{inCheckout(t, "docker-compose.yaml")}, cli.WithEnv(variables))
	require.NoError(t, err)
	return options.LoadProject(t.Context())
}

func composeProject(t *testing.T) *types.Project {
	t.Helper()
	project, err := loadCompose(t, kubeconfigVariable+"=/somewhere/kubeconfig")
	require.NoError(t, err)
	return project
}

// The loader refuses undefined services, volumes and configs by itself.
func TestComposeNeedsAKubeconfigAndNothingElse(t *testing.T) {
	project := composeProject(t)
	assert.ElementsMatch(t, []string{
		"worker", "watcher", "temporal", "temporal-schema", "temporal-namespace", "temporal-ui", "postgres", "s3",
		"foundationdb", "foundationdb-database",
	}, project.ServiceNames())
	_, err := loadCompose(t)
	require.ErrorContains(t, err, "name the kubeconfig of the cluster")
}

func TestComposePublishesOnLoopbackOnly(t *testing.T) {
	taken := map[string]string{}
	for _, service := range composeProject(t).Services {
		assert.Empty(t, service.NetworkMode, service.Name)
		assert.False(t, service.Privileged, service.Name)
		for _, port := range service.Ports {
			assert.Equal(t, "127.0.0.1", port.HostIP, "%s: port %d", service.Name, port.Target)
			assert.Empty(t, taken[port.Published], "%s: port %s is another service's", service.Name, port.Published)
			taken[port.Published] = service.Name
		}
	}
	assert.Len(t, taken, 8)
	assert.Equal(t, "temporal-ui", taken["8080"])
	assert.Empty(t, composeProject(t).Services["postgres"].Ports, "only Temporal needs its database")
}

func TestComposePinsImages(t *testing.T) {
	pinned := regexp.MustCompile(`^[a-z0-9./-]+:v?\d+\.\d+(\.\d+)?$`)
	for _, service := range composeProject(t).Services {
		if service.Build != nil {
			assert.Equal(t, "deploy/image/Dockerfile", service.Build.Dockerfile, service.Name)
			assert.Equal(t, inCheckout(t), service.Build.Context, service.Name)
			continue
		}
		assert.Regexp(t, pinned, service.Image, service.Name)
	}
}

// A service that others wait for has a health check, or ends.
func TestComposeWaitsForWhatIsThere(t *testing.T) {
	project := composeProject(t)
	for _, service := range project.Services {
		for name, dependency := range service.DependsOn {
			other := project.Services[name]
			switch dependency.Condition {
			case types.ServiceConditionHealthy:
				assert.NotNil(t, other.HealthCheck, "%s waits for the health of %s", service.Name, name)
			case types.ServiceConditionCompletedSuccessfully:
				assert.Empty(t, other.Restart, "%s waits for the end of %s", service.Name, name)
			default:
				assert.Equal(t, "foundationdb-database", service.Name, "it makes its server healthy")
			}
		}
	}
	for _, name := range []string{"temporal", "postgres", "s3", "foundationdb"} {
		assert.NotNil(t, project.Services[name].HealthCheck, name)
	}
	for _, name := range []string{"worker", "watcher"} {
		assert.Equal(t, types.ServiceConditionHealthy, project.Services[name].DependsOn["temporal"].Condition, name)
		assert.Contains(t, project.Services[name].DependsOn, "temporal-namespace", name)
	}
}

// A container that is recreated finds its data.
func TestComposeKeepsDataInNamedVolumes(t *testing.T) {
	project := composeProject(t)
	var used []string
	for _, name := range []string{"postgres", "s3", "foundationdb"} {
		require.NotEmpty(t, project.Services[name].Volumes, name)
		for _, volume := range project.Services[name].Volumes {
			assert.Equal(t, types.VolumeTypeVolume, volume.Type, name)
			used = append(used, volume.Source)
		}
	}
	assert.ElementsMatch(t, project.VolumeNames(), used)
}

func TestComposeGivesOurProgramsWhatTheyKnow(t *testing.T) {
	project := composeProject(t)
	for _, name := range []string{"worker", "watcher"} {
		service := project.Services[name]
		command := slices.Concat(service.Entrypoint, service.Command)
		require.NotEmpty(t, command)
		var variables []string
		for variable := range service.Environment {
			variables = append(variables, variable)
		}
		p := askProgram(t, command...)
		p.knows(t, name, variables, command)
		assert.True(t, service.ReadOnly, name)
		assert.Equal(t, []string{"ALL"}, service.CapDrop, name)
		assert.NotEmpty(t, service.User, name)
		require.Len(t, service.Volumes, 1)
		assert.Equal(t, "/somewhere/kubeconfig", service.Volumes[0].Source)
		assert.True(t, service.Volumes[0].ReadOnly)
		assert.Equal(t, service.Volumes[0].Target, *service.Environment["HOLDFAST_KUBECONFIG"])
		require.NotNil(t, service.StopGracePeriod)
		assert.GreaterOrEqual(t, time.Duration(*service.StopGracePeriod), 25*time.Second, "the worker's own 20 seconds, and some")
		for _, port := range service.Ports {
			flag := map[uint32]string{8081: "health-probe-bind-address", 9464: "metrics-bind-address"}[port.Target]
			require.NotEmpty(t, flag, "port %d", port.Target)
			assert.Equal(t, p.flags[flag], fmt.Sprintf(":%d", port.Target))
		}
	}
}
