package velero

import (
	"context"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"holdfast.dev/holdfast/activities/drill/gather"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/velero"
	"holdfast.dev/holdfast/starter/watch/caches"
	"holdfast.dev/holdfast/starter/watch/controllers"
	"holdfast.dev/holdfast/starter/watch/trim"
	"holdfast.dev/holdfast/workflows/contract"
	drillworkflow "holdfast.dev/holdfast/workflows/drill"
)

// +kubebuilder:rbac:groups=holdfast.dev,resources=restoredrills,verbs=list;watch

// restoreDrills keep what says whether a drill is over, and what it has shown of which backup.
var restoreDrills = caches.New(caches.Kind{
	Keys:  []string{holdfastv1alpha1.LabelPlan, holdfastv1alpha1.AnnotationPlanUID},
	Phase: func(object client.Object) string { return string(object.(*holdfastv1alpha1.RestoreDrill).Status.Phase) },
}, func(kept, of *holdfastv1alpha1.RestoreDrill) {
	status := &of.Status
	kept.Status = holdfastv1alpha1.RestoreDrillStatus{
		Phase: holdfastv1alpha1.DrillPhase(trim.Name(string(status.Phase))), Backup: trim.Name(status.Backup),
		BackupUID: types.UID(trim.Name(string(status.BackupUID))),
		Started:   status.Started, Concluded: status.Concluded, KeptUntil: status.KeptUntil, Ended: status.Ended,
		Conditions: trim.Conditions(status.Conditions, holdfastv1alpha1.ConditionVerified, holdfastv1alpha1.ConditionQueued),
	}
})

// drills are the RestoreDrills. Their namespaces and Velero Restores may outlive them.
type drills struct {
	*controllers.Kind[*holdfastv1alpha1.RestoreDrill]

	turns Turns
}

func newDrills(env *Env) *drills {
	d := &drills{turns: env.Turns}
	d.Kind = controllers.New(controllers.Kind[*holdfastv1alpha1.RestoreDrill]{
		Env: env.Env, Name: "restoredrill", Workflow: contract.KindDrill, Own: restoreDrills, Shared: true,
		Judge:   d.judge,
		Orphans: d.orphans, Unfinished: unfinishedDrill,
	})
	d.Sources = []controllers.Source{
		{Of: restoreDrills, Events: d.drillEvents()},
		{Of: veleroRestores, Events: d.madeEvents(veleroRestores)},
		{Of: caches.Namespaces, Events: d.madeEvents(caches.Namespaces)},
	}
	return d
}

// origin is the drill that an object was made for.
func (d *drills) origin(made client.Object) (contract.ObjectRef, bool) {
	key, uid, ours := owner.DrillOf(d.ClusterID, made)
	return contract.ObjectRef{Namespace: key.Namespace, Name: key.Name, UID: string(uid)}, ours
}

// judge: a deleted drill is not settled as long as something of it exists.
func (d *drills) judge(ctx context.Context, from client.Reader, ref contract.ObjectRef) (controllers.View, error) {
	gatherer := &gather.Gatherer{Reader: from, ClusterID: d.ClusterID, OADPNamespace: d.OADPNamespace, Cached: true}
	o, err := gatherer.Gather(ctx, ref)
	if err != nil {
		return controllers.View{}, err
	}
	view := o.View()
	if view.AwaitsTurn {
		d.turns.Request(ctx, contract.PoolRestores, o.Drill)
	}
	return controllers.View{Found: o.Drill != nil, Due: !drillworkflow.Settled(view)}, nil
}

// orphans are the drills for which something was made.
func (d *drills) orphans(ctx context.Context, do func(contract.ObjectRef)) error {
	each := func(made client.Object) {
		if ref, ours := d.origin(made); ours {
			do(ref)
		}
	}
	if err := caches.Each(ctx, d.Client, veleroRestores.Object, each, client.InNamespace(d.OADPNamespace)); err != nil {
		return err
	}
	return caches.Each(ctx, d.Client, caches.Namespaces.Object, each, client.HasLabels{holdfastv1alpha1.LabelDrill})
}

// drillEvents: the spec cannot change, and the status is the workflow's own; but that the drill waits for its turn is for the
// queue before Velero.
func (d *drills) drillEvents() controllers.Events {
	return d.OwnEvents(false, func(before, after client.Object) bool {
		return gather.AwaitsTurn(after.(*holdfastv1alpha1.RestoreDrill)) && !gather.AwaitsTurn(before.(*holdfastv1alpha1.RestoreDrill))
	})
}

// madeEvents are those of what was made for a drill: of a Velero Restore a new phase matters, and of all the deletion.
func (d *drills) madeEvents(of *caches.Kind) controllers.Events {
	enqueue := func(made client.Object, q controllers.Queue) {
		if ref, ours := d.origin(made); ours {
			d.Add(q, controllers.Request{Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID})
		}
	}
	return controllers.Events{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q controllers.Queue) {
			ref, ours := d.origin(e.Object)
			drill, found := d.Cached(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name})
			running := ours && found && string(drill.UID) == ref.UID && drill.Status.Phase != holdfastv1alpha1.DrillEnded
			if !running || e.IsInInitialList { // else it is our own creation
				enqueue(e.Object, q)
			}
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q controllers.Queue) {
			before, after := e.ObjectOld, e.ObjectNew
			newPhase := of.Phase != nil && of.Phase(before) != of.Phase(after)
			if newPhase {
				d.turnEnded(after)
			}
			deleted := before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero()
			if newPhase || deleted || before.GetUID() != after.GetUID() {
				enqueue(after, q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q controllers.Queue) {
			d.turnEnded(e.Object)
			enqueue(e.Object, q)
		},
	}
}

// turnEnded sends that Velero has finished the Restore of a drill, or does not know it any more.
func (d *drills) turnEnded(made client.Object) {
	restore, is := made.(*velerov1.Restore)
	ref, ours := d.origin(made)
	if !is || !ours || (velero.HoldsTurn(velero.PhaseOf(restore)) && restore.DeletionTimestamp.IsZero()) {
		return
	}
	drill := &holdfastv1alpha1.RestoreDrill{}
	drill.Namespace, drill.Name, drill.UID = ref.Namespace, ref.Name, types.UID(ref.UID)
	d.turns.NotNeeded(contract.PoolRestores, drill)
}
