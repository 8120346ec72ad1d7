package fdbworker

import (
	"cmp"
	"fmt"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"k8s.io/client-go/tools/events"
	kubeclient "sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/activities/fdb/backup"
	"holdfast.dev/holdfast/activities/fdb/coordination"
	"holdfast.dev/holdfast/activities/fdb/drill"
	"holdfast.dev/holdfast/activities/fdb/expiry"
	"holdfast.dev/holdfast/activities/fdb/gather"
	"holdfast.dev/holdfast/activities/fdb/restore"
	"holdfast.dev/holdfast/activities/fdb/tools"
	"holdfast.dev/holdfast/activities/fdblock"
	"holdfast.dev/holdfast/activities/fdbtool"
	"holdfast.dev/holdfast/activities/fdbtool/cage"
	"holdfast.dev/holdfast/activities/gate"
	"holdfast.dev/holdfast/k8s/metrics"
	"holdfast.dev/holdfast/workflows"
	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
)

// concurrentTools is how many tools a worker runs at a time. Each is a process, and one whose database does not answer runs until
// its limit.
const concurrentTools = 20

// Options are the settings of the workers.
type Options struct {
	ClusterID string
	Flags     Flags
	Workflows call.Options
	Temporal  client.Client
	Client    kubeclient.Client
	// TemporalAddress and APIServer are what the tools must not reach.
	TemporalAddress, APIServer string
	Events                     events.EventRecorder
	// Gates replay open workflows; they do not know yet of which queue.
	Gates gate.Activities
	// Worker is used for every queue, except for the deployment of the one that Kubernetes clusters share.
	Worker worker.Options
	// SharedBuildID is the build ID in that deployment, if it is not the worker's.
	SharedBuildID string
}

// Workers are those of one process. Stop all of them before Close.
type Workers struct {
	All []worker.Worker
	// Queues are the task queues that they poll.
	Queues []string
	tools  *fdbtool.Runner
}

// New makes the workers. None of them runs FoundationDB's tools without Flags.BinDir, or if a cage is required that the kernel
// does not support: another worker gets those tasks.
func New(options Options) (*Workers, error) {
	metrics.RegisterFDB()
	w := &Workers{}
	w.add(contract.FDBWorkflowTaskQueue(options.ClusterID), newWorkflowWorker(options))
	w.add(contract.SharedTaskQueue, newSharedWorker(options))
	uncaged := options.Flags.Cage.Require && cage.Lacking() != nil
	if options.Flags.BinDir == "" || uncaged {
		return w, nil
	}
	w.tools = options.Flags.runner(options.TemporalAddress, options.APIServer)
	if err := w.tools.Prepare(); err != nil {
		return nil, fmt.Errorf("prepare for running FoundationDB's tools: %w", err)
	}
	w.add(contract.FDBTaskQueue(options.ClusterID), newToolsWorker(options, w.tools))
	return w, nil
}

func (w *Workers) add(queue string, runner worker.Worker) {
	w.All, w.Queues = append(w.All, runner), append(w.Queues, queue)
}

// Close removes the files of the tools; what it cannot remove the next worker removes.
func (w *Workers) Close() {
	if w.tools != nil {
		_ = w.tools.Close()
	}
}

// newWorkflowWorker runs the workflows and short activities.
func newWorkflowWorker(o Options) worker.Worker {
	runner := worker.New(o.Temporal, contract.FDBWorkflowTaskQueue(o.ClusterID), o.Worker)
	o.Flags.addTo(&o.Workflows)
	o.registerWorkflows(runner, contract.QueueFDB)
	registerActivities(runner, o)
	return runner
}

func registerActivities(runner worker.ActivityRegistry, o Options) {
	cluster := activities.Cluster{Client: o.Client, Events: o.Events, Paused: activities.NeverPaused}
	backups := &backup.Activities{Cluster: cluster, Gatherer: &gather.Gatherer{Reader: o.Client}}
	backups.Register(runner)
	expiries := &expiry.Activities{
		Client: o.Client, Gatherer: &gather.Gatherer{Reader: o.Client}, Timeout: o.Flags.ExpiryTimeout,
	}
	expiries.Register(runner)
	coordination := &coordination.Activities{Temporal: o.Temporal}
	coordination.Register(runner)
	queue := &expiry.Coordination{Temporal: o.Temporal}
	queue.Register(runner)
	restores := &restore.Activities{Cluster: cluster, Gatherer: &restore.Gatherer{Reader: o.Client}}
	restores.Register(runner)
	drills := &drill.Activities{Cluster: cluster}
	drills.Register(runner)
}

// newSharedWorker serves the coordinators that Kubernetes clusters share. With worker versioning they share a deployment, too:
// with a deployment of its own, one Kubernetes cluster would take the queue over from the others.
func newSharedWorker(o Options) worker.Worker {
	if o.Worker.DeploymentOptions.UseVersioning {
		version := &o.Worker.DeploymentOptions.Version
		version.DeploymentName, version.BuildID = contract.SharedTaskQueue, cmp.Or(o.SharedBuildID, version.BuildID)
	}
	runner := worker.New(o.Temporal, contract.SharedTaskQueue, o.Worker)
	o.registerWorkflows(runner, contract.QueueShared)
	coordination := &coordination.Activities{Temporal: o.Temporal}
	coordination.RegisterShared(runner)
	return runner
}

// registerWorkflows registers those of a queue, and the gate of a new version of them.
func (o Options) registerWorkflows(runner worker.Worker, queue contract.Queue) {
	served := func(registry worker.WorkflowRegistry) { workflows.RegisterQueue(registry, queue, o.Workflows) }
	served(runner)
	o.Gates.Of(served).Register(runner)
}

// newToolsWorker runs FoundationDB's tools.
func newToolsWorker(o Options, programs *fdbtool.Runner) worker.Worker {
	o.Worker.DisableWorkflowWorker, o.Worker.WorkflowTaskPollerBehavior = true, nil
	o.Worker.MaxConcurrentActivityExecutionSize = concurrentTools
	runner := worker.New(o.Temporal, contract.FDBTaskQueue(o.ClusterID), o.Worker)
	registerTools(runner, o, programs)
	return runner
}

func registerTools(runner worker.ActivityRegistry, o Options, programs *fdbtool.Runner) {
	drills := &drill.Tools{Reader: o.Client, Runner: programs, Locker: fdblock.New()}
	drills.Register(runner)
	backups := &tools.Tools{
		Reader: o.Client, Runner: programs, Locker: fdblock.New(), Others: tools.Commands{contract.FDBDrillClear: drills.Clear},
	}
	backups.Register(runner)
	restores := &restore.Tools{Reader: o.Client, Runner: programs, Locker: fdblock.New()}
	restores.Register(runner)
}
