package main

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/workflows/contract"
)

// fence is a plan that is made after a restart, in a namespace of its own.
var fence = types.NamespacedName{Namespace: "bench-fence", Name: "fence"}

// observePlansRestart restarts workers and watchers over plans that have nothing to do, and counts what they write. It is over
// when a plan that is made after the restart has been served.
func (r *rig) observePlansRestart(ctx context.Context, of planLoad, plans *planObserver, report *plansReport) error {
	say("restarting Holdfast over %d plans", of.plans)
	started, err := r.planWorkflows(ctx)
	if err != nil {
		return err
	}
	begin := time.Now()
	for _, name := range append([]string{env.Worker}, r.watchers...) {
		if err := r.stack.Component(name).Restart(ctx); err != nil {
			return err
		}
	}
	restart := &report.Restart
	restart.ReadySeconds = time.Since(begin).Seconds()
	if !sleep(ctx, of.observed) {
		return ctx.Err()
	}
	again, err := r.planWorkflows(ctx)
	if err != nil {
		return err
	}
	restart.WorkflowsStarted = again - started
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fence.Namespace}}
	if err := r.client.Create(ctx, namespace); err != nil {
		return err
	}
	if err := r.client.Create(ctx, newPlan(fence, "0 0 29 2 *", "")); err != nil {
		return err
	}
	if err := awaitCount(ctx, of.plans+1, "plans are ready", plans.ready); err != nil {
		return err
	}
	requests, err := r.stack.Audit()
	if err != nil {
		return err
	}
	restart.count(requests, begin)
	restart.Processes, err = r.usage() // new processes
	return err
}

// planWorkflows counts the runs of plans' workflows, as far as visibility knows them.
func (r *rig) planWorkflows(ctx context.Context) (int64, error) {
	answer, err := r.temporal.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{
		Query: "WorkflowType = '" + contract.KindPlan.Workflow + "'",
	})
	return answer.GetCount(), err
}

// plansRestart is about Holdfast's processes that start over plans of which none is due.
type plansRestart struct {
	ReadySeconds     float64          `json:"readySeconds"`
	WorkflowsStarted int64            `json:"planWorkflowsStarted"`
	Writes           []string         `json:"writes"`
	Requests         int              `json:"requests"`
	Processes        map[string]usage `json:"processes"`
}

// count counts what was asked since a time, but for leases and probes, and for the plan that was made after the restart.
func (p *plansRestart) count(requests []env.AuditedRequest, since time.Time) {
	for _, request := range requests {
		ours := request.User == env.HoldfastWorker || request.User == env.HoldfastWatcher
		apart := request.Resource == "" || request.Resource == "leases" || request.Namespace == fence.Namespace
		if !ours || request.At.Before(since) || apart {
			continue
		}
		p.Requests++
		if request.Wrote() {
			of := fmt.Sprintf("%s: %s %s", request.User, request.Verb, request.Resource)
			p.Writes = append(p.Writes, fmt.Sprintf("%s %s/%s", of, request.Namespace, request.Name))
		}
	}
}
