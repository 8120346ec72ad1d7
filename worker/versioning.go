package main

import (
	"errors"
	"os"
	"strings"

	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/contract"
)

// The variables that Temporal's own worker controller sets on the Pods that it makes.
const (
	deploymentNameVariable = "TEMPORAL_DEPLOYMENT_NAME"
	buildIDVariable        = "TEMPORAL_WORKER_BUILD_ID"
)

// sharedBuildIDVariable is ours: the build ID in the deployment that the workers of all Kubernetes clusters share, for workers
// whose own ID is no other cluster's, as those of the controller are. Without it, it is the worker's own.
const sharedBuildIDVariable = "TEMPORAL_SHARED_BUILD_ID"

// fdbDeploymentSuffix ends the names of the deployments that serve FoundationDB alone.
const fdbDeploymentSuffix = "-fdb"

// deploymentOptions turns worker versioning on when both variables are set. The error is one line.
//
// Each kind of workflows says what becomes of those under way when another version is made current, see contract.Kind. Most move
// to that (auto-upgrade): a backup can wait for Velero for hours, or for ever for somebody's decision, and with pinning the
// workers of every old version would have to be kept until the last one ends. What makes the move safe is that new code replays
// old histories (test/histories). Only what runs to its end in minutes is pinned, and old workers have to stay until it has.
//
// A worker of FoundationDB alone must have a deployment of its own, since another process serves the other task queues: two that
// have a version in common would be made current, and drained, as one.
func deploymentOptions(serve string) (worker.DeploymentOptions, error) {
	name, build := os.Getenv(deploymentNameVariable), os.Getenv(buildIDVariable)
	if strings.HasPrefix(os.Getenv(sharedBuildIDVariable), "__") {
		return worker.DeploymentOptions{}, errors.New(sharedBuildIDVariable + ": must be an ID that does not begin with __")
	}
	switch {
	case name == "" && build == "":
		return worker.DeploymentOptions{}, nil
	case name == "":
		return worker.DeploymentOptions{}, errors.New(buildIDVariable + " is set and " + deploymentNameVariable +
			" is not: worker versioning needs both")
	case build == "":
		return worker.DeploymentOptions{}, errors.New(deploymentNameVariable + " is set and " + buildIDVariable +
			" is not: worker versioning needs both")
	case strings.ContainsAny(name, ".:") || strings.HasPrefix(name, "__"):
		return worker.DeploymentOptions{}, errors.New(deploymentNameVariable +
			": must be a name without '.' and ':' that does not begin with __")
	case name == contract.SharedTaskQueue:
		return worker.DeploymentOptions{}, errors.New(deploymentNameVariable +
			": must be a deployment of this cluster alone: all workers of FoundationDB share " + name)
	case serve == serveFDB && !strings.HasSuffix(name, fdbDeploymentSuffix):
		return worker.DeploymentOptions{}, errors.New(deploymentNameVariable + ": must be a name that ends in " + fdbDeploymentSuffix +
			" with --serve=fdb: it is no other worker's deployment")
	case strings.HasPrefix(build, "__"):
		return worker.DeploymentOptions{}, errors.New(buildIDVariable + ": must be an ID that does not begin with __")
	}
	return worker.DeploymentOptions{
		UseVersioning:             true,
		Version:                   worker.WorkerDeploymentVersion{DeploymentName: name, BuildID: build},
		DefaultVersioningBehavior: workflow.VersioningBehaviorAutoUpgrade,
	}, nil
}
