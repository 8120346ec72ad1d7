package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	temporalclient "go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/workflows/contract"
)

const (
	// stepsIdle is for how long the stack is measured without work. Temporal's own server never rests.
	stepsIdle = 20 * time.Second
	// stepTimeout is that of one activity.
	stepTimeout = time.Minute
)

// stepsReport compares two ways to run one step: a workflow with one local activity, and the same activity without a workflow.
type stepsReport struct {
	Steps  int          `json:"stepsOfARound"`
	Rounds []stepsRound `json:"rounds"`
	// IdleCPU is used without any step, and not part of what a step costs.
	IdleCPU map[string]float64 `json:"idleCPUMsPerSecond"`
}

// stepsRound is the cost of a step in each way, one measured after the other.
type stepsRound struct {
	Workflow stepCost `json:"workflow"`
	Activity stepCost `json:"activity"`
}

// stepCost is a mean.
type stepCost struct {
	Events float64            `json:"historyEvents"`
	CPU    map[string]float64 `json:"cpuMs"`
}

// stepsLoad is how often what is measured.
type stepsLoad struct{ steps, rounds int }

// measureSteps runs DefaultPlans, the kind that is one activity, without any default plan. It needs Temporal's own server: the
// development server has no activities without a workflow.
func measureSteps(ctx context.Context, of stepsLoad) (*stepsReport, error) {
	stack, err := env.Start(ctx, env.Options{
		Progress: os.Stdout, Holdfast: true, TemporalServer: true, Without: []string{env.S3, env.Velero},
	})
	if err != nil {
		return nil, err
	}
	r := &rig{stack: stack} // without a watcher, which would start workflows of its own
	defer r.stop()
	if err := stack.Component(env.Watcher).Stop(); err != nil {
		return nil, err
	}
	options, err := stack.TemporalOptions()
	if err != nil {
		return nil, err
	}
	if r.temporal, err = temporalclient.Dial(options); err != nil {
		return nil, err
	}
	report := &stepsReport{Steps: of.steps, IdleCPU: map[string]float64{}}
	for _, way := range []way{r.asWorkflow, r.asActivity} { // the first ones fill caches
		if _, err := r.steps(ctx, "first", of.steps, way); err != nil {
			return nil, err
		}
	}
	if err := r.measureIdle(ctx, report); err != nil {
		return nil, err
	}
	for i := range of.rounds {
		say("round %d of %d, twice %d steps", i+1, of.rounds, of.steps)
		var round stepsRound
		if round.Workflow, err = r.measureWay(ctx, report, numbered("round", i), r.asWorkflow); err != nil {
			return nil, err
		}
		if round.Activity, err = r.measureWay(ctx, report, numbered("round", i), r.asActivity); err != nil {
			return nil, err
		}
		report.Rounds = append(report.Rounds, round)
	}
	return report, nil
}

func numbered(prefix string, i int) string { return fmt.Sprintf("%s-%d", prefix, i) }

// way runs one step to its end, and returns how many events its history has.
type way func(ctx context.Context, id string) (events int64, err error)

func (r *rig) asWorkflow(ctx context.Context, id string) (int64, error) {
	kind := contract.KindDefaultPlans
	run, err := r.temporal.ExecuteWorkflow(ctx, temporalclient.StartWorkflowOptions{ID: id, TaskQueue: kind.TaskQueue("default")},
		kind.Workflow, contract.ScheduledInput{Cluster: "default"})
	if err != nil {
		return 0, err
	}
	if err := run.Get(ctx, nil); err != nil {
		return 0, err
	}
	described, err := r.temporal.DescribeWorkflowExecution(ctx, run.GetID(), run.GetRunID())
	return described.GetWorkflowExecutionInfo().GetHistoryLength(), err
}

func (r *rig) asActivity(ctx context.Context, id string) (int64, error) {
	activity, err := r.temporal.ExecuteActivity(ctx, temporalclient.StartActivityOptions{
		ID: id, TaskQueue: contract.TaskQueue("default"), StartToCloseTimeout: stepTimeout,
	}, contract.KeepDefaultPlans.Name, contract.ScheduledInput{Cluster: "default"})
	if err != nil {
		return 0, err
	}
	if err := activity.Get(ctx, nil); err != nil {
		return 0, err
	}
	_, err = activity.Describe(ctx, temporalclient.DescribeActivityOptions{}) // as a workflow is described
	return 0, err
}

// steps runs steps side by side, and returns how many events all of them have.
func (r *rig) steps(ctx context.Context, prefix string, count int, run way) (int64, error) {
	events := make([]int64, count)
	group, running := errgroup.WithContext(ctx)
	group.SetLimit(creators)
	for i := range count {
		group.Go(func() (err error) {
			events[i], err = run(running, numbered(prefix, i))
			return err
		})
	}
	err := group.Wait()
	var all int64
	for _, each := range events {
		all += each
	}
	return all, err
}

func (r *rig) measureIdle(ctx context.Context, into *stepsReport) error {
	before, err := r.usage()
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(stepsIdle):
	}
	after, err := r.usage()
	for name := range after {
		into.IdleCPU[name] = (after[name].CPUSeconds - before[name].CPUSeconds) * 1000 / stepsIdle.Seconds()
	}
	return err
}

func (r *rig) measureWay(ctx context.Context, of *stepsReport, prefix string, run way) (stepCost, error) {
	cost, steps := stepCost{CPU: map[string]float64{}}, float64(of.Steps)
	before, err := r.usage()
	if err != nil {
		return cost, err
	}
	begun := time.Now()
	events, err := r.steps(ctx, prefix, of.Steps, run)
	if err != nil {
		return cost, err
	}
	lasted := time.Since(begun).Seconds()
	after, err := r.usage()
	for name := range after {
		used := (after[name].CPUSeconds-before[name].CPUSeconds)*1000 - of.IdleCPU[name]*lasted
		cost.CPU[name] = used / steps
	}
	cost.Events = float64(events) / steps
	return cost, err
}

func (s *stepsReport) print(out io.Writer) {
	if s == nil {
		return
	}
	fmt.Fprintf(out, "\nOne step as a workflow with a local activity, and as an activity alone; means of %d\n\n", s.Steps)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(title string, value func(stepCost) float64) {
		fmt.Fprintf(table, "%s\t", title)
		for _, round := range s.Rounds {
			fmt.Fprintf(table, "%.1f\t%.1f\t", value(round.Workflow), value(round.Activity))
		}
		fmt.Fprintln(table)
	}
	fmt.Fprintln(table, "\t"+strings.Repeat("workflow\tactivity\t", len(s.Rounds)))
	row("history events", func(c stepCost) float64 { return c.Events })
	for _, name := range []string{env.Temporal, env.Postgres, env.Worker, env.KubeAPIServer, env.Etcd} {
		row("CPU ms, "+name, func(c stepCost) float64 { return c.CPU[name] })
	}
	_ = table.Flush() // the terminal
}
