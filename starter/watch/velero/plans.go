package velero

import (
	"context"
	"maps"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"holdfast.dev/holdfast/activities/usage"
	"holdfast.dev/holdfast/k8s"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/lifecycle"
	"holdfast.dev/holdfast/k8s/velero"
	"holdfast.dev/holdfast/starter/watch/caches"
	"holdfast.dev/holdfast/starter/watch/controllers"
	"holdfast.dev/holdfast/starter/watch/trim"
	"holdfast.dev/holdfast/workflows/contract"
)

// +kubebuilder:rbac:groups=holdfast.dev,resources=backupplans,verbs=list;watch

// backupPlans are cached with what their Schedules are compared by, and what the metrics count.
var backupPlans = caches.New(caches.Kind{
	Keys: []string{holdfastv1alpha1.LabelDefaultPlan, holdfastv1alpha1.AnnotationRunNow},
}, func(kept, of *holdfastv1alpha1.BackupPlan) {
	spec, status := &of.Spec, &of.Status
	kept.Spec = holdfastv1alpha1.BackupPlanSpec{
		Schedule: trim.Name(spec.Schedule), TimeZone: trim.Name(spec.TimeZone), Jitter: trim.Name(spec.Jitter),
		Paused: spec.Paused,
	}
	if objective := spec.Objective; objective != nil {
		kept.Spec.Objective = &holdfastv1alpha1.Objective{
			RecoveryPoint: trim.Name(objective.RecoveryPoint), Verified: trim.Name(objective.Verified),
		}
	}
	kept.Status = holdfastv1alpha1.BackupPlanStatus{
		UID: trim.Name(status.UID), ObservedGeneration: status.ObservedGeneration, Paused: trim.Name(status.Paused),
		NextRun: status.NextRun, HandledRunNow: trim.Text(status.HandledRunNow), Counts: status.Counts,
		Conditions: trim.Reasons(status.Conditions),
	}
	if good := status.LastGood; good != nil {
		kept.Status.LastGood = &holdfastv1alpha1.GoodRun{Name: trim.Name(good.Name), Time: good.Time, Expires: good.Expires}
	}
	if verified := status.LastVerified; verified != nil {
		kept.Status.LastVerified = &holdfastv1alpha1.VerifiedRun{Name: trim.Name(verified.Name), Time: verified.Time}
	}
	if status.Retention != nil {
		kept.Status.Retention = &holdfastv1alpha1.Retention{PendingSince: status.Retention.PendingSince}
	}
	if status.Content != nil {
		kept.Status.Content = &holdfastv1alpha1.Content{Less: status.Content.Less}
	}
})

// plans are the BackupPlans. Their workflows are open as long as they exist.
type plans struct {
	*controllers.Kind[*holdfastv1alpha1.BackupPlan]
	// defaultsChanged has default plans compared.
	defaultsChanged func()
	// tenantLabels: the census has each plan.
	tenantLabels bool
}

func newPlans(env *Env) *plans {
	p := &plans{defaultsChanged: env.DefaultPlansChanged, tenantLabels: env.TenantLabels}
	p.Kind = controllers.New(controllers.Kind[*holdfastv1alpha1.BackupPlan]{
		Env: env.Env, Name: "backupplan", Workflow: contract.KindPlan,
		Own: backupPlans, Shared: true,
		Judge:             p.judge,
		PolicyMatters:     func(*holdfastv1alpha1.BackupPlan) bool { return true },
		Census:            p.count,
		WorkflowHasPolicy: true,
	})
	p.Sources = []controllers.Source{
		{Of: backupPlans, Events: p.events()},
		{Of: nonAdminBackups, Events: p.backupEvents()},
		{Of: restoreDrills, Events: p.drillEvents()},
		{Of: caches.Namespaces, Events: p.namespaceEvents()},
	}
	return p
}

// planHint is the plan that a NonAdminBackup or RestoreDrill says has made it.
func planHint(made client.Object) (contract.ObjectRef, bool) {
	name := made.GetLabels()[holdfastv1alpha1.LabelPlan]
	uid := made.GetAnnotations()[holdfastv1alpha1.AnnotationPlanUID]
	return contract.ObjectRef{Namespace: made.GetNamespace(), Name: name, UID: uid}, name != "" && uid != ""
}

// judge: what a plan has to do depends on the time and on its Schedule, so that only its workflow knows it. A new spec or request
// is due.
func (p *plans) judge(ctx context.Context, from client.Reader, ref contract.ObjectRef) (controllers.View, error) {
	plan := &holdfastv1alpha1.BackupPlan{}
	exists, err := k8s.Get(ctx, from, holdfastv1alpha1.KindBackupPlan, ref.Namespace, ref.Name, plan)
	if err != nil {
		return controllers.View{}, err
	}
	if !exists || string(plan.UID) != ref.UID || !plan.DeletionTimestamp.IsZero() {
		return controllers.View{Ended: true}, nil // anybody may write a UID into a backup's annotation: it starts no workflow
	}
	requested := holdfastv1alpha1.RequestedRun(plan.Annotations)
	return controllers.View{
		Found: true, Open: true,
		Due: plan.Status.ObservedGeneration != plan.Generation || (requested != "" && requested != plan.Status.HandledRunNow) ||
			ofAnother(plan),
	}, nil
}

// ofAnother: a restore has brought the status of another plan.
func ofAnother(plan *holdfastv1alpha1.BackupPlan) bool {
	return plan.Status.UID != "" && plan.Status.UID != plan.UID
}

// events: the request for a run and a status that a restore has brought matter, too. Default plans are compared when somebody has
// changed one.
func (p *plans) events() controllers.Events {
	own := p.OwnEvents(false, func(before, after client.Object) bool {
		requested := holdfastv1alpha1.RequestedRun
		return requested(before.GetAnnotations()) != requested(after.GetAnnotations()) ||
			ofAnother(after.(*holdfastv1alpha1.BackupPlan))
	})
	return controllers.Both(own, controllers.Events{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ controllers.Queue) {
			if isDefault(e.ObjectOld) && (!isDefault(e.ObjectNew) || e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration()) {
				p.defaultsChanged()
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ controllers.Queue) {
			if isDefault(e.Object) {
				p.defaultsChanged()
			}
		},
	})
}

// backupEvents: what a plan decides by is how far its backups have come, whether they are held or being deleted, that they exist,
// and whether a drill has verified them.
func (p *plans) backupEvents() controllers.Events {
	return controllers.On(controllers.Deleted, func(before, after *oadpv1alpha1.NonAdminBackup) bool {
		return before.UID != after.UID || !maps.Equal(before.Labels, after.Labels) || stateOf(before) != stateOf(after) ||
			lastDrill(before) != lastDrill(after)
	}, func(_ context.Context, nab *oadpv1alpha1.NonAdminBackup, q controllers.Queue) { p.force(nab, q) })
}

// drillEvents: a plan follows its drills to their verdicts and to their ends.
func (p *plans) drillEvents() controllers.Events {
	return controllers.On(controllers.Deleted, func(before, after *holdfastv1alpha1.RestoreDrill) bool {
		was, is := &before.Status, &after.Status
		return (was.Concluded == nil) != (is.Concluded == nil) || (was.Ended == nil) != (is.Ended == nil)
	}, func(_ context.Context, drill *holdfastv1alpha1.RestoreDrill, q controllers.Queue) { p.force(drill, q) })
}

// force has the plan that has made an object read it.
func (p *plans) force(made client.Object, q controllers.Queue) {
	if ref, named := planHint(made); named {
		p.Add(q, controllers.Request{Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID, Force: true})
	}
}

// lastDrill is the last drill that has shown whether a backup is good.
func lastDrill(nab *oadpv1alpha1.NonAdminBackup) string {
	last := nab.Status.NewestDrill()
	if last == nil {
		return ""
	}
	return last.Name + last.Concluded.String()
}

// stateOf is what a plan counts a backup as. From the request of its deletion on it is being deleted, or cannot be: how far that
// has come is nothing to the plan.
func stateOf(nab *oadpv1alpha1.NonAdminBackup) string {
	progress := progressOf(nab)
	if lifecycle.DeletionRequested(nab) && progress != undeletable {
		return string(oadpv1alpha1.NonAdminPhaseDeleting)
	}
	return progress
}

// undeletable is a backup that Velero has failed to delete.
const undeletable = "undeletable"

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
		return undeletable
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
func (p *plans) namespaceEvents() controllers.Events {
	return controllers.On(controllers.Created, controllers.Rewritten,
		func(context.Context, client.Object, controllers.Queue) { p.defaultsChanged() })
}
