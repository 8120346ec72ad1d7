package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"sync"
	"text/tabwriter"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"golang.org/x/sync/errgroup"

	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/workflows/connect"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/entity"
)

const (
	baselineQueue = "baseline"
	baselineStep  = "BareStep"
	// baselineAtATime is how many workflows run at a time: as many as the watcher begins.
	baselineAtATime = 12
	baselineIdle    = 10 * time.Second
	// baselinePatience bounds one shape.
	baselinePatience = 10 * time.Minute
)

// baselineLoad is how many workflows are measured in each shape.
type baselineLoad struct{ workflows int }

func (f *baselineLoad) flags() {
	flag.IntVar(&f.workflows, "baseline", 1000, "profile baseline: workflows of each shape")
}

// baselineReport is the least that workflows take of Temporal, whatever they do: these do nothing.
type baselineReport struct {
	Workflows int             `json:"workflowsOfAShape"`
	Shapes    []baselineShape `json:"shapes"`
}

// baselineShape is the mean cost of a workflow, without what is needed at rest. The client and worker are those of this process.
type baselineShape struct {
	Title    string  `json:"title"`
	Events   int64   `json:"historyEvents"`
	Temporal float64 `json:"cpuMsTemporal"`
	Own      float64 `json:"cpuMsClientAndWorker"`
}

// bare is a workflow without any work.
type bare struct {
	// name is its type, title what is printed.
	name, title string
	// steps are the local activities after each signal; shown has these followed by an update of search attributes.
	steps []int
	shown bool
}

// bares are the shapes, the first that of a backup's workflow.
var bares = []bare{
	{name: "BareBackup", title: "a backup's events", steps: []int{2, 1}, shown: true},
	{name: "BareUnseen", title: "without search attributes", steps: []int{2, 1}},
	{name: "BareSignal", title: "one signal, one activity", steps: []int{1}},
}

func measureBaseline(ctx context.Context, of baselineLoad) (*baselineReport, error) {
	if of.workflows < 1 {
		return nil, errors.New("-baseline: must be at least 1")
	}
	r, err := startRig(ctx, 1, 1, env.Options{})
	if err != nil {
		return nil, err
	}
	defer r.stop()
	return r.baseline(ctx, of)
}

func (r *rig) baseline(ctx context.Context, of baselineLoad) (*baselineReport, error) {
	done := &stepSignals{}
	serving := worker.New(r.temporal, baselineQueue, worker.Options{
		WorkflowTaskPollerBehavior: worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{}),
	})
	done.register(serving)
	if err := serving.Start(); err != nil {
		return nil, err
	}
	defer serving.Stop()
	report := &baselineReport{Workflows: of.workflows}
	rest, err := r.baselineRest(ctx)
	if err != nil {
		return nil, err
	}
	for _, shape := range bares {
		say("%d workflows: %s", of.workflows, shape.title)
		measured, err := r.baselineOf(ctx, done, shape, of.workflows, rest)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", shape.title, err)
		}
		report.Shapes = append(report.Shapes, measured)
	}
	return report, nil
}

// baselineCost is CPU time, in seconds.
type baselineCost struct{ server, own float64 }

// baselineRest is what is used a second while nothing happens.
func (r *rig) baselineRest(ctx context.Context) (baselineCost, error) {
	before, err := r.baselineUsage()
	if err != nil {
		return before, err
	}
	if !sleep(ctx, baselineIdle) {
		return before, ctx.Err()
	}
	after, err := r.baselineUsage()
	return baselineCost{
		(after.server - before.server) / baselineIdle.Seconds(), (after.own - before.own) / baselineIdle.Seconds(),
	}, err
}

// baselineOf measures workflows of one shape. All are open when the next step begins, as a backup's is while Velero works.
func (r *rig) baselineOf(ctx context.Context, done *stepSignals, of bare, count int, rest baselineCost) (baselineShape, error) {
	ctx, cancel := context.WithTimeout(ctx, baselinePatience)
	defer cancel()
	cost := baselineShape{Title: of.title}
	before, err := r.baselineUsage()
	if err != nil {
		return cost, err
	}
	begin := time.Now()
	for range of.steps {
		group, running := errgroup.WithContext(ctx)
		group.SetLimit(baselineAtATime)
		for i := range count {
			group.Go(func() error { return r.stepBare(running, done, of.workflow(i)) })
		}
		if err := group.Wait(); err != nil {
			return cost, err
		}
	}
	last := r.temporal.GetWorkflow(ctx, of.workflow(count-1).Options.ID, "")
	if err := last.Get(ctx, nil); err != nil {
		return cost, err
	}
	lasted := time.Since(begin).Seconds()
	after, err := r.baselineUsage()
	if err != nil {
		return cost, err
	}
	each := 1000 / float64(count)
	cost.Temporal = (after.server - before.server - rest.server*lasted) * each
	cost.Own = (after.own - before.own - rest.own*lasted) * each
	described, err := r.temporal.DescribeWorkflowExecution(ctx, last.GetID(), last.GetRunID())
	cost.Events = described.GetWorkflowExecutionInfo().GetHistoryLength()
	return cost, err
}

// baselineUsage is what Temporal and this process have used.
func (r *rig) baselineUsage() (baselineCost, error) {
	server, err := r.used(env.Temporal)
	if err != nil {
		return baselineCost{}, err
	}
	own, err := usageOf(os.Getpid())
	return baselineCost{server: server.CPUSeconds, own: own.CPUSeconds}, err
}

// stepBare signals a workflow, and returns when it has taken the step.
func (r *rig) stepBare(ctx context.Context, done *stepSignals, bare connect.Workflow) error {
	stepped := done.next(bare.Options.ID)
	if err := bare.SignalWithStart(ctx, r.temporal, contract.SignalChanged, contract.Changed{}); err != nil {
		return err
	}
	select {
	case <-stepped:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("step of %s: %w", bare.Options.ID, ctx.Err())
	}
}

// workflow is started as that of a backup is, on another task queue.
func (of bare) workflow(i int) connect.Workflow {
	ref := contract.ObjectRef{Namespace: namespaceName(0), Name: numbered(of.name, i), UID: numbered("uid", i)}
	started := connect.ForObject(contract.KindBackup, "default", ref)
	started.Kind.Workflow, started.Options.TaskQueue = of.name, baselineQueue
	if !of.shown {
		started.Options.TypedSearchAttributes = temporal.SearchAttributes{}
	}
	return started
}

// run is the workflow's function.
func (of bare) run(ctx workflow.Context, in contract.ObjectInput) error {
	changed := workflow.GetSignalChannel(ctx, contract.SignalChanged)
	step := workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{StartToCloseTimeout: stepTimeout})
	id := workflow.GetInfo(ctx).WorkflowExecution.ID
	for i, activities := range of.steps {
		changed.Receive(ctx, nil)
		for range activities {
			if err := workflow.ExecuteLocalActivity(step, baselineStep, id).Get(ctx, nil); err != nil {
				return err
			}
		}
		if !of.shown {
			continue
		}
		if err := entity.Show(ctx, &in, numbered("phase", i), numbered("phase", i)); err != nil {
			return err
		}
	}
	return nil
}

// stepSignals tell who waits for a workflow's next step that it is done.
type stepSignals struct{ waiting sync.Map }

func (s *stepSignals) register(with worker.Worker) {
	for _, shape := range bares {
		with.RegisterWorkflowWithOptions(shape.run, workflow.RegisterOptions{Name: shape.name})
	}
	with.RegisterActivityWithOptions(s.step, activity.RegisterOptions{Name: baselineStep})
}

func (s *stepSignals) next(id string) <-chan struct{} {
	stepped := make(chan struct{})
	s.waiting.Store(id, stepped)
	return stepped
}

func (s *stepSignals) step(_ context.Context, id string) error {
	if stepped, waits := s.waiting.LoadAndDelete(id); waits {
		close(stepped.(chan struct{}))
	}
	return nil
}

func (f *baselineReport) print(out io.Writer) {
	if f == nil {
		return
	}
	fmt.Fprintf(out, "\nWorkflows that do nothing, means of %d: what Temporal, a client and a worker take at least\n\n", f.Workflows)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SHAPE\tHISTORY EVENTS\tCPU MS: TEMPORAL\tCLIENT AND WORKER")
	for _, shape := range f.Shapes {
		fmt.Fprintf(table, "%s\t%d\t%.1f\t%.1f\n", shape.Title, shape.Events, shape.Temporal, shape.Own)
	}
	_ = table.Flush() // the terminal
}
