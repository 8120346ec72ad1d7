package main

import (
	"context"
	"fmt"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.temporal.io/api/workflowservice/v1"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/velero"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/workflows/contract"
)

const (
	settlers = 32
	// restartPatience bounds making the objects and watching the restart.
	restartPatience = 30 * time.Minute
	// quietTime is how long the watcher is observed after it says that it is ready.
	quietTime = 15 * time.Second
)

// restartReport is about a watcher that starts over settled backups only: it must start nothing for them, and write nothing of
// them.
type restartReport struct {
	Settled      int     `json:"settled"`
	ReadySeconds float64 `json:"readySeconds"`
	// Workflows counts the runs that were started by their types, Writes the watcher's writes by verb and resource.
	Workflows map[string]int `json:"workflows"`
	Writes    map[string]int `json:"writes"`
	Requests  int            `json:"requests"`
	Watcher   usage          `json:"watcher"`
}

func measureRestart(ctx context.Context, count, namespaces int) (*restartReport, error) {
	ctx, cancel := context.WithTimeout(ctx, restartPatience)
	defer cancel()
	r, err := startRig(ctx, 1, namespaces, env.Options{Audit: true})
	if err != nil {
		return nil, err
	}
	defer r.stop()
	model, err := r.modelBackup(ctx)
	if err != nil {
		return nil, err
	}
	say("making %d settled backups and their Velero Backups", count)
	group, making := errgroup.WithContext(ctx)
	group.SetLimit(settlers)
	for i := range count {
		key := types.NamespacedName{Namespace: namespaceName(i % namespaces), Name: fmt.Sprintf("settled-%05d", i)}
		group.Go(func() error { return r.createSettled(making, key, model) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return r.observeRestart(ctx, count)
}

// model is a backup that Holdfast itself has brought to its end. The watcher is stopped then.
type model struct {
	nab    *oadpv1alpha1.NonAdminBackup
	velero *velerov1.Backup
}

func (r *rig) modelBackup(ctx context.Context) (*model, error) {
	key := types.NamespacedName{Namespace: namespaceName(0), Name: "model"}
	if err := r.createBackup(ctx, key); err != nil {
		return nil, err
	}
	if err := r.seen.await(ctx, []types.NamespacedName{key}); err != nil {
		return nil, err
	}
	id, err := r.workflowID(ctx, key)
	if err != nil {
		return nil, err
	}
	if err := r.temporal.GetWorkflow(ctx, id, "").Get(ctx, nil); err != nil {
		return nil, err
	}
	m := &model{nab: &oadpv1alpha1.NonAdminBackup{}, velero: &velerov1.Backup{}}
	if err := r.client.Get(ctx, key, m.nab); err != nil {
		return nil, err
	}
	made := types.NamespacedName{Namespace: env.OADPNamespace, Name: m.nab.Status.VeleroBackup.Name}
	if err := r.client.Get(ctx, made, m.velero); err != nil {
		return nil, err
	}
	return m, r.stack.Component(env.Watcher).Stop()
}

// createSettled makes a backup as the model became, under another name.
func (r *rig) createSettled(ctx context.Context, key types.NamespacedName, m *model) error {
	nab := &oadpv1alpha1.NonAdminBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Finalizers: m.nab.Finalizers},
		Spec:       *m.nab.Spec.DeepCopy(),
	}
	if err := r.client.Create(ctx, nab); err != nil {
		return err
	}
	name := owner.NACUUID(r.stack.ClusterID(), key.Namespace, key.Name, string(nab.UID))
	status := m.nab.Status.DeepCopy()
	status.VeleroBackup.Name, status.VeleroBackup.NACUUID = name, name
	bare := nab.DeepCopy()
	nab.Status = *status
	if err := r.client.Status().Patch(ctx, nab, client.MergeFrom(bare)); err != nil {
		return err
	}
	made := velero.NewBackup(nab, name, env.OADPNamespace, *m.velero.Spec.DeepCopy())
	made.Status = *m.velero.Status.DeepCopy()
	return r.client.Create(ctx, made)
}

func (r *rig) workflowsStarted(ctx context.Context) (int64, error) {
	answer, err := r.temporal.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{})
	return answer.GetCount(), err
}

// workflowsSince counts the runs that began since then by their types, as far as visibility knows them.
func (r *rig) workflowsSince(ctx context.Context, since time.Time) (map[string]int, error) {
	answer, err := r.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		Query: fmt.Sprintf("StartTime >= '%s'", since.UTC().Format(time.RFC3339Nano)), PageSize: 1000,
	})
	if err != nil {
		return nil, err
	}
	types := map[string]int{}
	for _, run := range answer.GetExecutions() {
		types[run.GetType().GetName()]++
	}
	return types, nil
}

func (r *rig) observeRestart(ctx context.Context, count int) (*restartReport, error) {
	begin := time.Now()
	watcher := r.stack.Component(env.Watcher)
	if err := watcher.Restart(ctx); err != nil {
		return nil, err
	}
	report := &restartReport{Settled: count, ReadySeconds: time.Since(begin).Seconds(), Writes: map[string]int{}}
	say("ready after %.1f s; watching for %s what it does", report.ReadySeconds, quietTime)
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(quietTime):
	}
	var err error
	if report.Workflows, err = r.workflowsSince(ctx, begin); err != nil {
		return nil, err
	}
	requests, err := r.stack.Audit()
	if err != nil {
		return nil, err
	}
	for _, request := range requests {
		if request.User != env.HoldfastWatcher || request.At.Before(begin) {
			continue
		}
		report.Requests++
		if request.Wrote() {
			report.Writes[request.Verb+" "+request.Resource]++
		}
	}
	report.Watcher, err = usageOf(watcher.PID())
	return report, err
}

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
