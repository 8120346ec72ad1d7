package env

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/test/tools"
	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/connect"
	"holdfast.dev/holdfast/workflows/contract"
)

const (
	crowded, quiet = "crowded", "quiet" // namespaces
	ofCrowded      = 40
	ofQuiet        = 4
)

// turnTask is the one activity of a workflow's child here.
var turnTask = contract.Activity[string, contract.None]{Name: "turn-task", Summary: "Note whose turn it is"}

// turnsRig notes in which order the tasks of two namespaces are dispatched by the stack's Temporal, which runs alone.
type turnsRig struct {
	t       *testing.T
	client  client.Client
	mu      sync.Mutex
	order   []string // the namespaces whose tasks have run
	reached int      // children whose activity waits
}

func newTurnsRig(t *testing.T) *turnsRig {
	t.Helper()
	if testing.Short() {
		t.Skip("starts Temporal")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(cancel)
	path, err := tools.Path(ctx, tools.Temporal)
	require.NoError(t, err)
	e, err := prepare(Options{})
	require.NoError(t, err)
	e.bin = map[string]string{tools.Temporal: path}
	t.Cleanup(e.Stop)
	require.NoError(t, e.startTemporal(ctx))
	c, err := client.DialContext(ctx, client.Options{HostPort: e.TemporalAddress(), Logger: QuietLogger()})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return &turnsRig{t: t, client: c}
}

// start starts workflows of a namespace as Holdfast does, or without the fairness key.
func (r *turnsRig) start(cluster, namespace string, number int, keyed bool) {
	r.t.Helper()
	for i := range number {
		ref := contract.ObjectRef{Namespace: namespace, Name: fmt.Sprintf("object-%d", i), UID: "u"}
		restore := connect.ForObject(contract.KindRestore, cluster, ref)
		options := restore.Options
		options.TypedSearchAttributes = temporal.SearchAttributes{} // nobody has registered them here
		if !keyed {
			options.Priority = temporal.Priority{}
		}
		_, err := r.client.ExecuteWorkflow(r.t.Context(), options, restore.Kind.Workflow, restore.Input)
		require.NoError(r.t, err)
	}
}

// work starts a worker with as few slots as the SDK allows.
func (r *turnsRig) work(cluster string, run any, options worker.Options) {
	r.t.Helper()
	options.MaxConcurrentWorkflowTaskPollers, options.MaxConcurrentWorkflowTaskExecutionSize = 2, 2
	options.MaxConcurrentActivityTaskPollers, options.MaxConcurrentActivityExecutionSize = 1, 1
	w := worker.New(r.client, contract.TaskQueue(cluster), options)
	if !options.DisableWorkflowWorker {
		w.RegisterWorkflowWithOptions(run, workflow.RegisterOptions{Name: contract.KindRestore.Workflow})
		w.RegisterWorkflowWithOptions(r.child, workflow.RegisterOptions{Name: contract.KindFinalization.Workflow})
	}
	w.RegisterActivityWithOptions(r.task, activity.RegisterOptions{Name: turnTask.Name})
	require.NoError(r.t, w.Start())
	r.t.Cleanup(w.Stop)
}

// brief is a workflow that ends in its first task.
func (r *turnsRig) brief(_ workflow.Context, in contract.ObjectInput) error {
	r.note(in.Ref.Namespace)
	return nil
}

// parent continues as new, and then runs a child, which runs an activity. None of them is given a key.
func (r *turnsRig) parent(ctx workflow.Context, in contract.ObjectInput) error {
	if in.ShownPhase == "" {
		in.ShownPhase = "continued"
		return workflow.NewContinueAsNewError(ctx, contract.KindRestore.Workflow, in)
	}
	return workflow.ExecuteChildWorkflow(ctx, contract.KindFinalization.Workflow, in).Get(ctx, nil)
}

func (r *turnsRig) child(ctx workflow.Context, _ contract.ObjectInput) error {
	key := workflow.GetInfo(ctx).Priority.FairnessKey
	ending := call.Start(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute}, turnTask, key)
	if !workflow.IsReplaying(ctx) {
		r.mu.Lock()
		r.reached++
		r.mu.Unlock()
	}
	return ending.Get(ctx, nil)
}

func (r *turnsRig) task(_ context.Context, namespace string) (contract.None, error) {
	r.note(namespace)
	return contract.None{}, nil
}

func (r *turnsRig) note(namespace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.order = append(r.order, namespace)
}

// await waits until so many are counted.
func (r *turnsRig) await(want int, count func() int, what string) {
	r.t.Helper()
	eventually.IsTrue(r.t, 2*time.Minute, what, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return count() >= want
	})
}

// lastQuiet waits for all tasks and returns the place of the quiet namespace's last one.
func (r *turnsRig) lastQuiet() int {
	r.t.Helper()
	r.await(ofCrowded+ofQuiet, func() int { return len(r.order) }, "all tasks have run")
	r.mu.Lock()
	defer r.mu.Unlock()
	r.t.Logf("%v", r.order)
	assert.Len(r.t, r.order, ofCrowded+ofQuiet)
	slices.Reverse(r.order)
	last := len(r.order) - 1 - slices.Index(r.order, quiet)
	r.order = nil
	return last
}

// A namespace that comes after forty tasks of another one gets its turns at once. Without keys it waits for most of them.
func TestNamespacesTakeTurnsAtATaskQueue(t *testing.T) {
	r := newTurnsRig(t)

	r.start("keyed", crowded, ofCrowded, true)
	r.start("keyed", quiet, ofQuiet, true)
	r.work("keyed", r.brief, worker.Options{})
	assert.Less(t, r.lastQuiet(), ofCrowded/2, "workflow tasks, with the namespace as fairness key")

	r.start("keyless", crowded, ofCrowded, false)
	r.start("keyless", quiet, ofQuiet, false)
	r.work("keyless", r.brief, worker.Options{})
	assert.Greater(t, r.lastQuiet(), ofCrowded/2, "workflow tasks, without a key")

	r.work("inherited", r.parent, worker.Options{LocalActivityWorkerOnly: true})
	r.start("inherited", crowded, ofCrowded, true)
	r.await(ofCrowded, func() int { return r.reached }, "all activities are scheduled")
	r.start("inherited", quiet, ofQuiet, true)
	r.await(ofCrowded+ofQuiet, func() int { return r.reached }, "all activities are scheduled")
	r.work("inherited", nil, worker.Options{DisableWorkflowWorker: true})
	assert.Less(t, r.lastQuiet(), ofCrowded/2, "activities of children of continued workflows")
}
