package fdb

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/starter/watch/caches"
	"holdfast.dev/holdfast/starter/watch/controllers"
	"holdfast.dev/holdfast/starter/watch/trim"
	"holdfast.dev/holdfast/workflows/contract"
	fdbdrill "holdfast.dev/holdfast/workflows/fdb/drill"
)

// +kubebuilder:rbac:groups=fdb.holdfast.dev,resources=foundationdbdrills,verbs=list;watch

// fdbDrills keep what says whether a drill is over, and for what it waits.
var fdbDrills = caches.New(caches.Kind{Finalizers: []string{fdbv1alpha1.FinalizerDrillTarget}},
	func(kept, of *fdbv1alpha1.FoundationDBDrill) {
		kept.Spec = fdbv1alpha1.FoundationDBDrillSpec{BackupName: trim.Name(of.Spec.BackupName)}
		kept.Status = fdbv1alpha1.FoundationDBDrillStatus{
			ObservedGeneration: of.Status.ObservedGeneration,
			Phase:              fdbv1alpha1.FoundationDBDrillPhase(trim.Name(string(of.Status.Phase))),
			Version:            of.Status.Version, Ended: of.Status.Ended,
		}
	})

// drills are the FoundationDBDrills. Our finalizer keeps each until its target is cleared, so nothing of it outlives it.
type drills struct {
	*controllers.Kind[*fdbv1alpha1.FoundationDBDrill]
}

func newDrills(env *controllers.Env) *drills {
	d := &drills{}
	d.Kind = controllers.New(controllers.Kind[*fdbv1alpha1.FoundationDBDrill]{
		Env: env, Name: "foundationdbdrill", Workflow: contract.KindFDBDrill, Own: fdbDrills,
		Judge: judge(fdbv1alpha1.KindFoundationDBDrill, drillSettled,
			func(drill *fdbv1alpha1.FoundationDBDrill) int64 { return drill.Status.ObservedGeneration }),
		Unfinished: func(drill *fdbv1alpha1.FoundationDBDrill) bool { return !drillSettled(drill) },
	})
	d.Sources = []controllers.Source{
		{Of: fdbDrills, Events: d.OwnEvents(true, controllers.Never)},
		{Of: fdbRestores, Events: d.restoreEvents()},
		{Of: fdbBackups, Events: d.backupEvents()},
	}
	return d
}

// drillSettled judges by the object alone.
func drillSettled(drill *fdbv1alpha1.FoundationDBDrill) bool {
	return fdbdrill.Settled(contract.FDBDrillView{
		Found: true, BeingDeleted: !drill.DeletionTimestamp.IsZero(), Ended: drill.Status.Ended != nil,
		Held: controllerutil.ContainsFinalizer(drill, fdbv1alpha1.FinalizerDrillTarget),
	})
}

// maker is the FoundationDBDrill for which a FoundationDBRestore was made; nil if there is none.
func maker(restore client.Object) *metav1.OwnerReference {
	by := metav1.GetControllerOf(restore)
	if by == nil || by.Kind != fdbv1alpha1.KindFoundationDBDrill {
		return nil
	}
	version, err := schema.ParseGroupVersion(by.APIVersion)
	if err != nil || version.Group != fdbv1alpha1.GroupVersion.Group || max(len(by.Name), len(by.UID)) > trim.NameBytes {
		return nil
	}
	return by
}

// restoreEvents: the drill waits for a new state of its restore, and for its end.
func (d *drills) restoreEvents() controllers.Events {
	matters := func(before, after *fdbv1alpha1.FoundationDBRestore) bool {
		return before.UID != after.UID || before.Status.State != after.Status.State
	}
	return controllers.On(controllers.Deleted, matters,
		func(_ context.Context, restore *fdbv1alpha1.FoundationDBRestore, q controllers.Queue) {
			if by := maker(restore); by != nil {
				request := controllers.Request{Namespace: restore.Namespace, Name: by.Name, UID: string(by.UID)}
				d.Add(q, request.Forced(true))
			}
		})
}

// backupEvents: a drill may wait until the backup holds its version.
func (d *drills) backupEvents() controllers.Events {
	matters := func(before, after *fdbv1alpha1.FoundationDBBackup) bool { return latestOf(before) != latestOf(after) }
	return controllers.On(controllers.CreatedSince, matters,
		func(ctx context.Context, backup *fdbv1alpha1.FoundationDBBackup, q controllers.Queue) {
			d.Each(ctx, func(drill *fdbv1alpha1.FoundationDBDrill) {
				waits := drill.Spec.BackupName == backup.Name && drill.Status.Phase == fdbv1alpha1.FDBDrillWaiting
				if waits && latestOf(backup) >= drill.Status.Version {
					d.Add(q, controllers.RequestFor(drill).Forced(true))
				}
			}, client.InNamespace(backup.Namespace))
		})
}

func latestOf(backup *fdbv1alpha1.FoundationDBBackup) (latest int64) {
	for _, entry := range backup.Status.Backups {
		if entry.LatestRestorable != nil {
			latest = max(latest, entry.LatestRestorable.Version)
		}
	}
	return latest
}
