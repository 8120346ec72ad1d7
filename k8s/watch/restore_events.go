package watch

import (
	"context"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/restore"
)

// adding is for the restores that an event of something else concerns.
func (r *restores) adding(q queue) func(*oadpv1alpha1.NonAdminRestore) {
	return func(nar *oadpv1alpha1.NonAdminRestore) { r.add(q, requestFor(nar)) }
}

// restoreEvents: generation, deletion, labels and our finalizer matter; a change of status alone is our own doing, and
// wakes no workflow. A rejection is looked at once more: what it depends on may have changed before the cache knew of it.
func (r *restores) restoreEvents() events {
	return events{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
			r.addNew(q, requestFor(e.Object), phaseOf(e.Object), e.IsInInitialList)
			r.positionsChanged()
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			before, after := e.ObjectOld.(*oadpv1alpha1.NonAdminRestore), e.ObjectNew.(*oadpv1alpha1.NonAdminRestore)
			if before.UID != after.UID {
				r.addEnd(q, requestFor(before))
			}
			if !awaitsCreation(after.Status.Phase) {
				r.beginnings.begun(requestFor(after))
			}
			rejected := before.Status.Phase != after.Status.Phase && after.Status.Phase == oadpv1alpha1.NonAdminPhaseBackingOff
			switch {
			case !concerns(before, after, oadpv1alpha1.NarFinalizer) && !rejected:
			case !after.DeletionTimestamp.IsZero():
				r.addEnd(q, requestFor(after))
			default:
				r.add(q, requestFor(after))
			}
			if before.Status.Phase != after.Status.Phase {
				r.positionsChanged()
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			r.addEnd(q, requestFor(e.Object))
		},
	}
}

// veleroEvents: a new phase or a deletion at once, progress alone no more often than the progress interval.
func (r *restores) veleroEvents() events {
	return events{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			r.positionsChanged()
			nar := r.origin(ctx, e.Object)
			// Our own creation is no news, the cache of the other kind may be behind; the return of a Restore that was missed is.
			if nar != nil && !awaitsCreation(nar.Status.Phase) {
				r.add(q, requestFor(nar))
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			before, after := e.ObjectOld.(*velerov1.Restore), e.ObjectNew.(*velerov1.Restore)
			newPhase := before.Status.Phase != after.Status.Phase
			if newPhase {
				r.positionsChanged()
			}
			nar := r.origin(ctx, after)
			switch {
			case nar == nil || before.ResourceVersion == after.ResourceVersion:
			case newPhase && restore.Finished(after.Status.Phase):
				r.addEnd(q, requestFor(nar))
			case newPhase || before.UID != after.UID || !before.DeletionTimestamp.Equal(after.DeletionTimestamp):
				r.add(q, requestFor(nar))
			default:
				r.addAfter(q, requestFor(nar), r.ProgressInterval)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			r.positionsChanged()
			r.volumes.forget(e.Object.GetName())
			if nar := r.origin(ctx, e.Object); nar != nil {
				r.addEnd(q, requestFor(nar))
				return
			}
			// Somebody else's: it may have stood where the Restore of one that is BackingOff should be.
			r.eachBackingOff(ctx, r.adding(q))
		},
	}
}

// backupEvents: a backup that comes, goes or gets ready may change the verdict on the restores that name it.
func (r *restores) backupEvents() events {
	enqueue := func(ctx context.Context, object client.Object, q queue) {
		r.eachBackingOff(ctx, func(nar *oadpv1alpha1.NonAdminRestore) {
			if spec := nar.Spec.RestoreSpec; spec != nil && spec.BackupName == object.GetName() {
				r.add(q, requestFor(nar))
			}
		}, client.InNamespace(object.GetNamespace()))
	}
	return events{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { enqueue(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			before, after := e.ObjectOld.(*oadpv1alpha1.NonAdminBackup), e.ObjectNew.(*oadpv1alpha1.NonAdminBackup)
			if before.Status.Phase != after.Status.Phase || concerns(before, after, oadpv1alpha1.NabFinalizer) {
				enqueue(ctx, after, q)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { enqueue(ctx, e.Object, q) },
	}
}

// veleroBackupEvents: so may its Velero Backup.
func (r *restores) veleroBackupEvents() events {
	enqueue := func(ctx context.Context, object client.Object, q queue) {
		if key, named := k8s.BackupOrigin.Of(object); named {
			r.eachBackingOff(ctx, r.adding(q), client.InNamespace(key.Namespace))
		}
	}
	return events{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { enqueue(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			before, after := e.ObjectOld.(*velerov1.Backup), e.ObjectNew.(*velerov1.Backup)
			if before.Status.Phase != after.Status.Phase || !before.DeletionTimestamp.Equal(after.DeletionTimestamp) ||
				before.Spec.StorageLocation != after.Spec.StorageLocation {
				enqueue(ctx, after, q)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { enqueue(ctx, e.Object, q) },
	}
}

// locationEvents: so may the location that holds it, an administrator's for every tenant.
func (r *restores) locationEvents() events {
	enqueue := func(ctx context.Context, object client.Object, q queue) {
		if key, named := k8s.LocationOrigin.Of(object); named {
			r.eachBackingOff(ctx, r.adding(q), client.InNamespace(key.Namespace))
			return
		}
		r.eachBackingOff(ctx, r.adding(q))
	}
	return events{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { enqueue(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			before, after := e.ObjectOld.(*velerov1.BackupStorageLocation), e.ObjectNew.(*velerov1.BackupStorageLocation)
			if before.Status.Phase != after.Status.Phase { // otherwise it was validated again, about once a minute
				enqueue(ctx, after, q)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { enqueue(ctx, e.Object, q) },
	}
}

// namespaceEvents: a namespace that is being deleted must not hang on our finalizer.
func (r *restores) namespaceEvents() events {
	enqueue := func(ctx context.Context, object client.Object, q queue) {
		if !object.GetDeletionTimestamp().IsZero() {
			r.each(ctx, r.adding(q), client.InNamespace(object.GetName()))
		}
	}
	return events{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { enqueue(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { enqueue(ctx, e.ObjectNew, q) },
	}
}

// volumeEvents: progress of a volume is progress of its restore.
func (r *restores) volumeEvents() events {
	enqueue := func(ctx context.Context, object client.Object, q queue) {
		name := object.GetLabels()[velerov1.RestoreNameLabel]
		if name == "" {
			return
		}
		r.volumes.add(name)
		made := &velerov1.Restore{}
		if r.gatherer.Reader.Get(ctx, types.NamespacedName{Namespace: r.OADPNamespace, Name: name}, made) != nil {
			return // not there, or not yet: its own event will come
		}
		if nar := r.origin(ctx, made); nar != nil {
			r.addAfter(q, requestFor(nar), r.ProgressInterval)
		}
	}
	return events{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { enqueue(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion() {
				enqueue(ctx, e.ObjectNew, q)
			}
		},
	}
}

// origin finds the NonAdminRestore that a Velero object names as its origin, in the cache; nil if there is none.
func (r *restores) origin(ctx context.Context, object client.Object) *oadpv1alpha1.NonAdminRestore {
	key, named := k8s.RestoreOrigin.Of(object)
	if !named {
		return nil
	}
	nar := &oadpv1alpha1.NonAdminRestore{}
	if err := r.gatherer.Reader.Get(ctx, key, nar); err != nil {
		return nil // not there, or not yet: its own event will come
	}
	return nar
}
