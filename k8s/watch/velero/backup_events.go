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

func (b *backups) veleroEvents() watched.Events {
	return b.madeEvents(
		velero.Finished[string],
		func(before, after client.Object) bool {
			return before.(*velerov1.Backup).Status.QueuePosition != after.(*velerov1.Backup).Status.QueuePosition
		},
		func(client.Object, client.Object) bool { return false },
	)
}

func (b *backups) deleteRequestEvents() watched.Events {
	enqueue := func(ctx context.Context, request client.Object, q watched.Queue) {
		if nab, found := b.of(ctx, request); found {
			b.AddEnd(q, watched.RequestFor(nab))
		}
	}
	return watched.Events{
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q watched.Queue) {
			before, after := e.ObjectOld.(*velerov1.DeleteBackupRequest), e.ObjectNew.(*velerov1.DeleteBackupRequest)
			if before.Status.Phase != after.Status.Phase {
				enqueue(ctx, after, q)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q watched.Queue) { enqueue(ctx, e.Object, q) },
	}
}

// locationEvents: a storage location that is created, deleted or changed may change the verdict on backups that are BackingOff.
func (b *backups) locationEvents() watched.Events {
	enqueue := func(ctx context.Context, object client.Object, q watched.Queue) {
		namespace := object.GetNamespace()
		if velero, ok := object.(*velerov1.BackupStorageLocation); ok {
			key, _ := owner.Location.Hint(velero)
			namespace = key.Namespace
		}
		if namespace != "" {
			b.eachBackingOff(ctx, b.adding(q), client.InNamespace(namespace))
		}
	}
	return watched.Events{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q watched.Queue) { enqueue(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q watched.Queue) {
			before, isVelero := e.ObjectOld.(*velerov1.BackupStorageLocation)
			if isVelero && before.Status.Phase == e.ObjectNew.(*velerov1.BackupStorageLocation).Status.Phase {
				return // validated again, about once a minute
			}
			enqueue(ctx, e.ObjectNew, q)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q watched.Queue) {
			enqueue(ctx, e.Object, q)
			if _, isVelero := e.Object.(*velerov1.BackupStorageLocation); isVelero {
				b.Each(ctx, func(nab *oadpv1alpha1.NonAdminBackup) { // a backup in it that is being deleted need not wait
					if !nab.DeletionTimestamp.IsZero() {
						b.Add(q, watched.RequestFor(nab))
					}
				})
			}
		},
	}
}
