package velero

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"holdfast.dev/holdfast/activities/usage"
	"holdfast.dev/holdfast/k8s"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/velero"
	"holdfast.dev/holdfast/k8s/watch/watched"
	"holdfast.dev/holdfast/workflows/contract"
)

// +kubebuilder:rbac:groups=holdfast.dev,resources=backupplans,verbs=get;list;watch

// plans are the BackupPlans. Their workflows are open as long as they exist.
type plans struct {
	*watched.Kind[*holdfastv1alpha1.BackupPlan]
	// defaultsChanged has default plans compared.
	defaultsChanged func()
	// tenantLabels: the census has each plan.
	tenantLabels bool
}

func newPlans(env *Env) *plans {
	p := &plans{defaultsChanged: env.DefaultPlansChanged, tenantLabels: env.TenantLabels}
	p.Kind = watched.New(watched.Kind[*holdfastv1alpha1.BackupPlan]{
		Env: env.Env, Name: "backupplan", Workflow: contract.KindPlan,
		Shared: true,
		Sources: []watched.Source{
			{Of: &holdfastv1alpha1.BackupPlan{}, Events: p.events()},
			{Of: &oadpv1alpha1.NonAdminBackup{}, Events: p.backupEvents()},
			{Of: namespaces, Events: p.namespaceEvents()},
		},
		Judge: p.judge,
		Sweep: watched.Sweep{Compared: []watched.Compared{
			{Of: &oadpv1alpha1.NonAdminBackup{}, Concerns: planHint},
			{Of: &holdfastv1alpha1.BackupPlan{}, Concerns: watched.Itself},
		}},
		Judged:           func(*holdfastv1alpha1.BackupPlan) bool { return true },
		Census:           p.count,
		JudgedByWorkflow: true,
	})
	return p
}

// planHint is the plan that a NonAdminBackup says has made it.
func planHint(nab client.Object) (contract.ObjectRef, bool) {
	name := nab.GetLabels()[holdfastv1alpha1.LabelPlan]
	uid := nab.GetAnnotations()[holdfastv1alpha1.AnnotationPlanUID]
	return contract.ObjectRef{Namespace: nab.GetNamespace(), Name: name, UID: uid}, name != "" && uid != ""
}

// judge: what a plan has to do depends on the time and on its Schedule, so that only its workflow knows it. A new spec or request
// is due.
func (p *plans) judge(ctx context.Context, from client.Reader, ref contract.ObjectRef) (watched.View, error) {
	plan := &holdfastv1alpha1.BackupPlan{}
	exists, err := k8s.Get(ctx, from, holdfastv1alpha1.KindBackupPlan, ref.Namespace, ref.Name, plan)
	if err != nil {
		return watched.View{}, err
	}
	if !exists || string(plan.UID) != ref.UID || !plan.DeletionTimestamp.IsZero() {
		return watched.View{Ended: true}, nil // anybody may write a UID into a backup's annotation: it starts no workflow
	}
	requested := holdfastv1alpha1.RequestedRun(plan.Annotations)
	return watched.View{
		Found: true, Open: true,
		Due: plan.Status.ObservedGeneration != plan.Generation || (requested != "" && requested != plan.Status.HandledRunNow),
	}, nil
}

// events: generation, deletion and the request for a run matter. A change of the status is our own.
func (p *plans) events() watched.Events {
	return watched.Events{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q watched.Queue) { p.Add(q, watched.RequestFor(e.Object)) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q watched.Queue) {
			before, after := e.ObjectOld, e.ObjectNew
			if before.GetUID() != after.GetUID() {
				p.Add(q, watched.RequestFor(before))
			}
			requested := holdfastv1alpha1.RequestedRun
			if watched.Concerns(before, after, "") || requested(before.GetAnnotations()) != requested(after.GetAnnotations()) {
				p.Add(q, watched.RequestFor(after))
			}
			if isDefault(before) && (!isDefault(after) || before.GetGeneration() != after.GetGeneration()) {
				p.defaultsChanged() // somebody has changed it
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q watched.Queue) {
			p.Add(q, watched.RequestFor(e.Object))
			if isDefault(e.Object) {
				p.defaultsChanged()
			}
		},
	}
}

// backupEvents: what a plan decides by is how far its backups have come, whether they are held or being deleted, and that they
// exist.
func (p *plans) backupEvents() watched.Events {
	enqueue := func(object client.Object, q watched.Queue) {
		if ref, named := planHint(object); named {
			p.Add(q, watched.Request{Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID, Force: true})
		}
	}
	return watched.Events{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q watched.Queue) {
			before, after := e.ObjectOld.(*oadpv1alpha1.NonAdminBackup), e.ObjectNew.(*oadpv1alpha1.NonAdminBackup)
			if watched.Concerns(before, after, "") || progressOf(before) != progressOf(after) {
				enqueue(after, q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q watched.Queue) { enqueue(e.Object, q) },
	}
}

// progressOf is how far a backup has come, as a plan counts it: each step is a signal, and a pass of the plan.
func progressOf(nab *oadpv1alpha1.NonAdminBackup) string {
	made, phase := nab.Status.VeleroBackup, nab.Status.Phase
	accepted := meta.FindStatusCondition(nab.Status.Conditions, string(oadpv1alpha1.NonAdminConditionAccepted))
	switch {
	case accepted != nil && accepted.Reason == oadpv1alpha1.ReasonVeleroBackupNotFound:
		return "gone"
	case usage.OverQuota(nab):
		return oadpv1alpha1.ReasonQuotaExceeded
	case k8s.WaitsForTurn(nab.Status.Conditions): // also from BackingOff
		return ""
	case phase == oadpv1alpha1.NonAdminPhaseDeleting && velero.Undeletable(nab): // its plan waits for it no more
		return "undeletable"
	case phase == oadpv1alpha1.NonAdminPhaseBackingOff, phase == oadpv1alpha1.NonAdminPhaseDeleting:
		return string(phase)
	case made == nil:
		return ""
	case made.Status != nil && velero.Finished(made.Status.Phase):
		return string(made.Status.Phase)
	case made.Status != nil && made.Status.StartTimestamp != nil:
		return "begun"
	}
	return "made"
}

func isDefault(plan client.Object) bool {
	_, marked := plan.GetLabels()[holdfastv1alpha1.LabelDefaultPlan]
	return marked
}

// namespaceEvents: labels decide which default plans a namespace gets, and the cache has not kept many.
func (p *plans) namespaceEvents() watched.Events {
	return watched.Events{
		CreateFunc: func(context.Context, event.CreateEvent, watched.Queue) { p.defaultsChanged() },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ watched.Queue) {
			if e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion() {
				p.defaultsChanged()
			}
		},
	}
}
