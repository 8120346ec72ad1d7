package watch

import (
	"context"
	"maps"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/backup"
)

type queue = workqueue.TypedRateLimitingInterface[Request]

type events = handler.TypedFuncs[client.Object, Request]

// backupEvents: generation, deletion, labels and our finalizer matter; a change of status alone is our own doing, and
// wakes no workflow. A rejection is looked at once more: what it depends on may have changed before the cache knew of it.
func (w *Watcher) backupEvents() events {
	return events{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
			w.addNew(q, requestFor(e.Object), phaseOf(e.Object), e.IsInInitialList)
			w.positionsChanged()
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			before, after := e.ObjectOld.(*oadpv1alpha1.NonAdminBackup), e.ObjectNew.(*oadpv1alpha1.NonAdminBackup)
			if before.UID != after.UID {
				w.addEnd(q, requestFor(before))
			}
			if !awaitsCreation(after.Status.Phase) {
				w.beginnings.begun(requestFor(after))
			}
			rejected := before.Status.Phase != after.Status.Phase && after.Status.Phase == oadpv1alpha1.NonAdminPhaseBackingOff
			switch {
			case !concerns(before, after, oadpv1alpha1.NabFinalizer) && !rejected:
			case !after.DeletionTimestamp.IsZero() || after.Spec.DeleteBackup || after.Spec.ForceDeleteBackup:
				w.addEnd(q, requestFor(after))
			default:
				w.add(q, requestFor(after))
			}
			if before.Status.Phase != after.Status.Phase {
				w.positionsChanged()
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			w.addEnd(q, requestFor(e.Object))
		},
	}
}

// concerns reports whether a change of a tenant's object, which finalizer of ours protects, is its workflow's concern.
func concerns(before, after client.Object, finalizer string) bool {
	return before.GetUID() != after.GetUID() ||
		before.GetGeneration() != after.GetGeneration() ||
		!before.GetDeletionTimestamp().Equal(after.GetDeletionTimestamp()) ||
		!maps.Equal(before.GetLabels(), after.GetLabels()) ||
		(controllerutil.ContainsFinalizer(before, finalizer) && !controllerutil.ContainsFinalizer(after, finalizer))
}

// veleroBackupEvents: a new phase or a deletion at once, progress alone no more often than the progress interval.
func (w *Watcher) veleroBackupEvents() events {
	return events{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			w.positionsChanged()
			nab := w.origin(ctx, e.Object)
			// Our own creation is no news, the cache of the other kind may be behind; the arrival of a Backup that was missed is.
			if nab != nil && !awaitsCreation(nab.Status.Phase) {
				w.add(q, requestFor(nab))
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			before, after := e.ObjectOld.(*velerov1.Backup), e.ObjectNew.(*velerov1.Backup)
			if before.Status.Phase != after.Status.Phase || before.Status.QueuePosition != after.Status.QueuePosition {
				w.positionsChanged()
			}
			nab := w.origin(ctx, after)
			switch {
			case nab == nil || before.ResourceVersion == after.ResourceVersion:
			case backup.Finished(after.Status.Phase) && before.Status.Phase != after.Status.Phase:
				w.addEnd(q, requestFor(nab))
			case before.Status.Phase != after.Status.Phase || before.UID != after.UID:
				w.add(q, requestFor(nab))
			default:
				w.addAfter(q, requestFor(nab), w.ProgressInterval)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			w.positionsChanged()
			w.volumes.forget(e.Object.GetName())
			if nab := w.origin(ctx, e.Object); nab != nil {
				w.addEnd(q, requestFor(nab))
				return
			}
			// Somebody else's: it may have stood where the Backup of one that is BackingOff should be.
			w.eachBackingOff(ctx, func(nab *oadpv1alpha1.NonAdminBackup) { w.add(q, requestFor(nab)) })
		},
	}
}

// awaitsCreation: the object's workflow is about to create its Velero Backup, or has just done so.
func awaitsCreation(phase oadpv1alpha1.NonAdminPhase) bool {
	return phase == "" || phase == oadpv1alpha1.NonAdminPhaseNew
}

func (w *Watcher) deleteRequestEvents() events {
	enqueue := func(ctx context.Context, object client.Object, q queue) {
		if nab := w.origin(ctx, object); nab != nil {
			w.addEnd(q, requestFor(nab))
		}
	}
	return events{
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			before, after := e.ObjectOld.(*velerov1.DeleteBackupRequest), e.ObjectNew.(*velerov1.DeleteBackupRequest)
			if before.Status.Phase != after.Status.Phase {
				enqueue(ctx, after, q)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { enqueue(ctx, e.Object, q) },
	}
}

// locationEvents: a storage location that comes, goes or changes may change the verdict on backups that are BackingOff.
func (w *Watcher) locationEvents() events {
	enqueue := func(ctx context.Context, object client.Object, q queue) {
		namespace := object.GetNamespace()
		if velero, ok := object.(*velerov1.BackupStorageLocation); ok {
			namespace = velero.Annotations[oadpv1alpha1.NabslOriginNamespaceAnnotation]
		}
		if namespace != "" {
			w.eachBackingOff(ctx, func(nab *oadpv1alpha1.NonAdminBackup) {
				w.add(q, requestFor(nab))
			}, client.InNamespace(namespace))
		}
	}
	return events{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { enqueue(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			before, isVelero := e.ObjectOld.(*velerov1.BackupStorageLocation)
			if isVelero && before.Status.Phase == e.ObjectNew.(*velerov1.BackupStorageLocation).Status.Phase {
				return // validated again, about once a minute
			}
			enqueue(ctx, e.ObjectNew, q)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			enqueue(ctx, e.Object, q)
			if _, isVelero := e.Object.(*velerov1.BackupStorageLocation); isVelero {
				w.each(ctx, func(nab *oadpv1alpha1.NonAdminBackup) { // what lay there and is being deleted need not wait
					if !nab.DeletionTimestamp.IsZero() {
						w.add(q, requestFor(nab))
					}
				})
			}
		},
	}
}

// namespaceEvents: a namespace that is being deleted must not hang on our finalizer. An object that was already being
// deleted sees no event of its own then.
func (w *Watcher) namespaceEvents() events {
	enqueue := func(ctx context.Context, object client.Object, q queue) {
		if object.GetDeletionTimestamp().IsZero() {
			return
		}
		w.each(ctx, func(nab *oadpv1alpha1.NonAdminBackup) { w.add(q, requestFor(nab)) }, client.InNamespace(object.GetName()))
	}
	return events{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { enqueue(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { enqueue(ctx, e.ObjectNew, q) },
	}
}

// passOn enqueues requests that come from elsewhere than an informer.
func passOn(add func(queue, Request)) handler.TypedFuncs[Request, Request] {
	return handler.TypedFuncs[Request, Request]{
		GenericFunc: func(_ context.Context, e event.TypedGenericEvent[Request], q queue) { add(q, e.Object) },
	}
}

// origin finds the NonAdminBackup that a Velero object names as its origin, in the cache; nil if there is none.
func (w *Watcher) origin(ctx context.Context, object client.Object) *oadpv1alpha1.NonAdminBackup {
	key, named := k8s.BackupOrigin.Of(object)
	if !named {
		return nil
	}
	nab := &oadpv1alpha1.NonAdminBackup{}
	if err := w.gatherer.Reader.Get(ctx, key, nab); err != nil {
		return nil // not there, or not yet: its own event will come
	}
	return nab
}
