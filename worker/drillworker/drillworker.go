package drillworker

import (
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	kubeclient "sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/drill/namespaces"
	"holdfast.dev/holdfast/workflows/contract"
)

// Options are the settings of the worker.
type Options struct {
	ClusterID string
	Temporal  client.Client
	Client    kubeclient.Client
	// Paused returns an error while another controller serves the tenants' backups.
	Paused func() error
	Worker worker.Options
}

// New makes the worker. It runs no workflows.
func New(o Options) worker.Worker {
	o.Worker.DisableWorkflowWorker, o.Worker.WorkflowTaskPollerBehavior = true, nil
	o.Worker.DeploymentOptions = worker.DeploymentOptions{} // it serves the workflows of all versions
	runner := worker.New(o.Temporal, contract.DrillTaskQueue(o.ClusterID), o.Worker)
	places := &namespaces.Activities{Client: o.Client, ClusterID: o.ClusterID, Paused: o.Paused}
	places.Register(runner)
	return runner
}
