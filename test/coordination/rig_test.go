package coordination_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/activities/fdb/coordination"
	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/workflows"
	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
)

// rig is a Kubernetes cluster of its own: workers, and what is run by them.
type rig struct {
	t       *testing.T
	cluster string
	mu      sync.Mutex
	// begun and ended are tags of commands, running is how many run now per FoundationDB cluster.
	begun, ended []string
	keys         []string // the fairness keys of commands
	running      map[string]int
	overlap      bool          // of two commands of one FoundationDB cluster
	hold         chan struct{} // what commands of the tag "hold" wait for
}

func newRig(t *testing.T) *rig {
	t.Helper()
	cluster := strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	return &rig{t: t, cluster: cluster, running: map[string]int{}, hold: make(chan struct{})}
}

// owners starts a worker that runs owners.
func (r *rig) owners() worker.Worker {
	return r.worker(contract.SharedTaskQueue, func(w worker.Worker) {
		workflows.Register(w, call.Options{})
		(&coordination.Activities{Temporal: temporalClient}).RegisterShared(w)
	})
}

// house starts a worker of the Kubernetes cluster's own queue.
func (r *rig) house(options call.Options) worker.Worker {
	return r.worker(contract.FDBWorkflowTaskQueue(r.cluster), func(w worker.Worker) {
		workflows.Register(w, options)
		(&coordination.Activities{Temporal: temporalClient}).Register(w)
		w.RegisterActivityWithOptions(noFirstSnapshots, activity.RegisterOptions{Name: contract.FindFirstSnapshots.Name})
		w.RegisterWorkflowWithOptions(requester, workflow.RegisterOptions{Name: "requester"})
		w.RegisterWorkflowWithOptions(snapshot, workflow.RegisterOptions{Name: "snapshot"})
		w.RegisterWorkflowWithOptions(looker, workflow.RegisterOptions{Name: "looker"})
	})
}

// tools starts a worker that runs commands.
func (r *rig) tools() worker.Worker {
	return r.worker(contract.FDBTaskQueue(r.cluster), func(w worker.Worker) {
		w.RegisterActivityWithOptions(r.command, activity.RegisterOptions{Name: contract.RunFDBCommand.Name})
	})
}

func (r *rig) worker(queue string, register func(worker.Worker)) worker.Worker {
	r.t.Helper()
	w := worker.New(temporalClient, queue, worker.Options{MaxConcurrentActivityExecutionSize: 100, MaxHeartbeatThrottleInterval: beats})
	register(w)
	require.NoError(r.t, w.Start())
	r.t.Cleanup(w.Stop)
	return w
}

// command is a tool that runs for a moment. Of the tag "hold", it runs until it is let go, and of the tag "lost" without a sign
// of life, as when its worker was killed.
func (r *rig) command(ctx context.Context, command contract.FDBCommand) (contract.FDBOutcome, error) {
	r.mu.Lock()
	r.begun = append(r.begun, command.Tag)
	r.keys = append(r.keys, activity.GetInfo(ctx).Priority.FairnessKey)
	r.running[command.Ref.Name]++
	r.overlap = r.overlap || r.running[command.Ref.Name] > 1
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.ended = append(r.ended, command.Tag)
		r.running[command.Ref.Name]--
	}()
	switch command.Tag {
	case "hold":
		for held := true; held; {
			activity.RecordHeartbeat(ctx)
			select {
			case <-r.hold:
				held = false
			case <-time.After(time.Second):
			}
		}
	case "lost":
		<-r.hold
	default:
		time.Sleep(100 * time.Millisecond)
	}
	return contract.FDBOutcome{Done: true}, nil
}

func (r *rig) commands() (begun, ended []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.begun), slices.Clone(r.ended)
}

// requester is a backup's workflow that asks once.
func requester(ctx workflow.Context, ask contract.FDBCommandRequest) (contract.FDBCommandAnswer, error) {
	ask.Member.WorkflowID = workflow.GetInfo(ctx).WorkflowExecution.ID
	ask.Member.Name = ask.Member.WorkflowID
	if ask.Until == 0 {
		ask.Until = workflow.Now(ctx).Add(contract.FDBRequestWait).Unix()
	}
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: contract.FDBRequestTimeout, HeartbeatTimeout: heartbeat,
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, MaximumInterval: time.Second},
	})
	var answer contract.FDBCommandAnswer
	err := workflow.ExecuteActivity(ctx, contract.RequestFDBCommand.Name, ask).Get(ctx, &answer)
	return answer, err
}

// asks has a backup ask the owner of a FoundationDB cluster for a command.
func (r *rig) asks(fdb, tag string) client.WorkflowRun {
	r.t.Helper()
	return r.start("requester", r.cluster+"/fdbb/"+fdb+"/"+tag, contract.FDBCommandRequest{
		Cluster: r.cluster + ":" + fdb, Queue: contract.FDBTaskQueue(r.cluster),
		Command: &contract.FDBCommand{Operation: contract.FDBStart, Tag: tag, Ref: contract.ObjectRef{Namespace: "shop", Name: fdb}},
	})
}

func (r *rig) start(name, id string, in any) client.WorkflowRun {
	r.t.Helper()
	run, err := temporalClient.ExecuteWorkflow(r.t.Context(), client.StartWorkflowOptions{
		ID: id, TaskQueue: contract.FDBWorkflowTaskQueue(r.cluster), WorkflowTaskTimeout: contract.WorkflowTaskTimeout,
	}, name, in)
	require.NoError(r.t, err)
	return run
}

// result waits for the end of a workflow, and reads its result into out unless that is nil.
func (r *rig) result(run client.WorkflowRun, out any) error {
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	return run.Get(ctx, out)
}

// answer waits for what a requester was answered.
func (r *rig) answer(run client.WorkflowRun) contract.FDBCommandAnswer {
	r.t.Helper()
	var answer contract.FDBCommandAnswer
	require.NoError(r.t, r.result(run, &answer))
	return answer
}

// runs returns how many runs a workflow had, which must follow each other as continuations, and the status of the last.
func (r *rig) runs(ctx context.Context, id string) (count int, last enumspb.WorkflowExecutionStatus, err error) {
	run := ""
	for count := 1; ; count++ {
		described, err := temporalClient.DescribeWorkflowExecution(ctx, id, run)
		if err != nil {
			return 0, last, err
		}
		if count == 1 {
			last = described.GetWorkflowExecutionInfo().GetStatus()
		}
		events := temporalClient.GetWorkflowHistory(ctx, id, described.GetWorkflowExecutionInfo().GetExecution().GetRunId(),
			false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		first, err := events.Next()
		if err != nil {
			return 0, last, err
		}
		run = first.GetWorkflowExecutionStartedEventAttributes().GetContinuedExecutionRunId()
		if run == "" {
			return count, last, nil
		}
	}
}

// eventually waits until a condition holds that cannot fail.
func (r *rig) eventually(condition func() bool, what string) {
	r.t.Helper()
	eventually.IsTrue(r.t, patience, what, condition)
}

// succeeds waits until Temporal, which may have no answer meanwhile, tells what is wished.
func (r *rig) succeeds(try func(ctx context.Context) error) {
	r.t.Helper()
	eventually.Succeeds(r.t, patience, func() error {
		ctx, cancel := context.WithTimeout(r.t.Context(), callPatience)
		defer cancel()
		return try(ctx)
	})
}

// noFirstSnapshots: there is no Kubernetes here to look for backups in their first snapshot.
func noFirstSnapshots(context.Context, contract.FDBThrottleInput) (contract.FDBHolders, error) {
	return contract.FDBHolders{}, nil
}
