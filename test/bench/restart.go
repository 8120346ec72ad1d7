package main

import (
	"context"
	"fmt"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.temporal.io/api/workflowservice/v1"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/velero"
	"holdfast.dev/holdfast/test/env"
)

const (
	settlers = 32
	// restartPatience bounds making the objects and watching the restart.
	restartPatience = 30 * time.Minute
	// quietTime is how long the watcher is observed after it says that it is ready.
	quietTime = 15 * time.Second
)

// restartReport is about a watcher that starts over settled backups only: it must start nothing and write nothing.
type restartReport struct {
	Settled          int     `json:"settled"`
	ReadySeconds     float64 `json:"readySeconds"`
	WorkflowsStarted int64   `json:"workflowsStarted"`
	Writes           int     `json:"writes"`
	Requests         int     `json:"requests"`
	Watcher          usage   `json:"watcher"`
}

func measureRestart(ctx context.Context, count, namespaces int) (*restartReport, error) {
	ctx, cancel := context.WithTimeout(ctx, restartPatience)
	defer cancel()
	r, err := startRig(ctx, 1, env.Options{})
	if err != nil {
		return nil, err
	}
	defer r.stop()
	if err := r.createNamespaces(ctx, namespaces); err != nil {
		return nil, err
	}
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

func (r *rig) observeRestart(ctx context.Context, count int) (*restartReport, error) {
	before, err := r.workflowsStarted(ctx)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	watcher := r.stack.Component(env.Watcher)
	if err := watcher.Restart(ctx); err != nil {
		return nil, err
	}
	report := &restartReport{Settled: count, ReadySeconds: time.Since(begin).Seconds()}
	say("ready after %.1f s; watching for %s what it does", report.ReadySeconds, quietTime)
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(quietTime):
	}
	after, err := r.workflowsStarted(ctx)
	if err != nil {
		return nil, err
	}
	report.WorkflowsStarted = after - before
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
			report.Writes++
		}
	}
	report.Watcher, err = usageOf(watcher.PID())
	return report, err
}
