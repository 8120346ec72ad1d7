package main

import (
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

func TestVersioningIsOnWhenBothVariablesAreSet(t *testing.T) {
	options, err := deploymentOptions(serveVelero)
	require.NoError(t, err)
	assert.Equal(t, worker.DeploymentOptions{}, options, "off by default")

	t.Setenv(deploymentNameVariable, "holdfast-worker")
	t.Setenv(buildIDVariable, "v0.2.0-1:a.b")
	options, err = deploymentOptions(serveVelero)
	require.NoError(t, err)
	assert.Equal(t, worker.DeploymentOptions{
		UseVersioning:             true,
		Version:                   worker.WorkerDeploymentVersion{DeploymentName: "holdfast-worker", BuildID: "v0.2.0-1:a.b"},
		DefaultVersioningBehavior: workflow.VersioningBehaviorAutoUpgrade,
	}, options)

	t.Setenv(deploymentNameVariable, "holdfast-fdb")
	options, err = deploymentOptions(serveFDB)
	require.NoError(t, err)
	assert.Equal(t, "holdfast-fdb", options.Version.DeploymentName)
}

// Half a version would poll as none and take tasks that are not for it, so the process does not start.
func TestABadVersionEndsTheWorkerInOneLine(t *testing.T) {
	tests := map[string]struct {
		name, build, want, shared string
		args                      []string
	}{
		"no build ID":           {name: "holdfast-worker", build: "", want: "TEMPORAL_DEPLOYMENT_NAME is set and TEMPORAL_WORKER_BUILD_ID is not: worker versioning needs both"},
		"no deployment":         {name: "", build: "v1", want: "TEMPORAL_WORKER_BUILD_ID is set and TEMPORAL_DEPLOYMENT_NAME is not: worker versioning needs both"},
		"a dot in the name":     {name: "holdfast.worker", build: "v1", want: "TEMPORAL_DEPLOYMENT_NAME: must be a name without '.' and ':'"},
		"a colon in the name":   {name: "holdfast:worker", build: "v1", want: "TEMPORAL_DEPLOYMENT_NAME: must be a name without '.' and ':'"},
		"an ID Temporal claims": {name: "holdfast-worker", build: "__v1", want: "TEMPORAL_WORKER_BUILD_ID: must be an ID that does not begin with __"},
		"a shared ID Temporal claims": {
			name: "holdfast-worker", build: "v1", shared: "__v1", want: "TEMPORAL_SHARED_BUILD_ID: must be an ID that does not begin with __",
		},
		"a name Temporal claims": {name: "__holdfast", build: "v1", want: "TEMPORAL_DEPLOYMENT_NAME: must be a name"},
		"the name that clusters share": {
			name: "holdfast-shared", build: "v1",
			want: "TEMPORAL_DEPLOYMENT_NAME: must be a deployment of this cluster alone: all workers of FoundationDB share holdfast-shared",
		},
		"the other worker's name": {
			name: "holdfast-worker", build: "v1", want: "TEMPORAL_DEPLOYMENT_NAME: must be a name that ends in -fdb with --serve=fdb",
			args: []string{"--serve=fdb", "--fdb-bin-dir=."},
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			t.Setenv(deploymentNameVariable, test.name)
			t.Setenv(buildIDVariable, test.build)
			t.Setenv(sharedBuildIDVariable, test.shared)
			start := command()
			start.SilenceErrors, start.SilenceUsage = true, true
			start.SetArgs(test.args)
			start.SetErr(io.Discard)
			err := start.ExecuteContext(t.Context())
			require.ErrorContains(t, err, test.want)
			assert.NotContains(t, err.Error(), "\n")
		})
	}
}
