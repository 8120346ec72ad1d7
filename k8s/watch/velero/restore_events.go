package velero

import (
	"context"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/velero"
	"holdfast.dev/holdfast/k8s/watch/watched"
)

func (r *restores) veleroEvents() watched.Events {
	return r.madeEvents(
		velero.Finished[string],
		func(client.Object, client.Object) bool { return false },
		func(before, after client.Object) bool {
			return !before.GetDeletionTimestamp().Equal(after.GetDeletionTimestamp())
		},
	)
}

// backupEvents: a backup that is created, deleted or becomes ready may change the verdict on the restores that name it.
func (r *restores) backupEvents() watched.Events {
	enqueue := func(ctx context.Context, object client.Object, q watched.Queue) {
		r.eachBackingOff(ctx, func(nar *oadpv1alpha1.NonAdminRestore) {
			if spec := nar.Spec.RestoreSpec; spec != nil && spec.BackupName == object.GetName() {
				r.Add(q, watched.RequestFor(nar))
			}
		}, client.InNamespace(object.GetNamespace()))
	}
	return watched.Events{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q watched.Queue) { enqueue(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q watched.Queue) {
			before, after := e.ObjectOld.(*oadpv1alpha1.NonAdminBackup), e.ObjectNew.(*oadpv1alpha1.NonAdminBackup)
			if before.Status.Phase != after.Status.Phase || watched.Concerns(before, after, oadpv1alpha1.NabFinalizer) {
				enqueue(ctx, after, q)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q watched.Queue) { enqueue(ctx, e.Object, q) },
	}
}

// veleroBackupEvents: so may its Velero Backup.
func (r *restores) veleroBackupEvents() watched.Events {
	enqueue := func(ctx context.Context, object client.Object, q watched.Queue) {
		if key, named := owner.Backup.Hint(object); named {
			r.eachBackingOff(ctx, r.adding(q), client.InNamespace(key.Namespace))
		}
	}
	return watched.Events{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q watched.Queue) { enqueue(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q watched.Queue) {
			before, after := e.ObjectOld.(*velerov1.Backup), e.ObjectNew.(*velerov1.Backup)
			if before.Status.Phase != after.Status.Phase || !before.DeletionTimestamp.Equal(after.DeletionTimestamp) ||
				before.Spec.StorageLocation != after.Spec.StorageLocation {
				enqueue(ctx, after, q)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q watched.Queue) { enqueue(ctx, e.Object, q) },
	}
}

// locationEvents: so may the location that holds it; an administrator's concerns every tenant.
func (r *restores) locationEvents() watched.Events {
	enqueue := func(ctx context.Context, object client.Object, q watched.Queue) {
		if key, named := owner.Location.Hint(object); named {
			r.eachBackingOff(ctx, r.adding(q), client.InNamespace(key.Namespace))
			return
		}
		r.eachBackingOff(ctx, r.adding(q))
	}
	return watched.Events{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q watched.Queue) { enqueue(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q watched.Queue) {
			before, after := e.ObjectOld.(*velerov1.BackupStorageLocation), e.ObjectNew.(*velerov1.BackupStorageLocation)
			if before.Status.Phase != after.Status.Phase { // otherwise it was validated again, about once a minute
				enqueue(ctx, after, q)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q watched.Queue) { enqueue(ctx, e.Object, q) },
	}
}
