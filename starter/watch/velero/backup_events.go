package velero

import (
	"context"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"holdfast.dev/holdfast/activities/backup"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/starter/watch/controllers"
)

func (b *backups) deleteRequestEvents() controllers.Events {
	enqueue := func(ctx context.Context, request *velerov1.DeleteBackupRequest, q controllers.Queue) {
		if nab, found := b.of(ctx, request); found {
			b.AddEnd(q, controllers.RequestFor(nab))
		}
	}
	newPhase := func(before, after *velerov1.DeleteBackupRequest) bool {
		return before.Status.Phase != after.Status.Phase
	}
	return controllers.Both(controllers.On(0, newPhase, enqueue), controllers.Events{
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q controllers.Queue) {
			// Velero deletes its Backup before the request, and that has its own event.
			request := e.Object.(*velerov1.DeleteBackupRequest)
			made := client.ObjectKey{Namespace: b.OADPNamespace, Name: request.Spec.BackupName}
			if err := b.Client.Get(ctx, made, &velerov1.Backup{}); !apierrors.IsNotFound(err) {
				enqueue(ctx, request, q)
			}
		},
	})
}

// locationEvents: a storage location that is created, deleted or changed may change the verdict on backups that are BackingOff.
func (b *backups) locationEvents() controllers.Events {
	ofVelero := func(location client.Object) bool {
		_, is := location.(*velerov1.BackupStorageLocation)
		return is
	}
	matters := func(before, after client.Object) bool { // Velero validates again about once a minute
		return !ofVelero(before) || newPhase(veleroLocations)(before, after)
	}
	enqueue := func(ctx context.Context, location client.Object, q controllers.Queue) {
		namespace := location.GetNamespace()
		if ofVelero(location) {
			key, _ := owner.Location.Hint(location)
			namespace = key.Namespace
		}
		if namespace != "" {
			b.eachBackingOff(ctx, b.adding(q), client.InNamespace(namespace))
		}
	}
	events := controllers.On(controllers.Created|controllers.Deleted, matters, enqueue)
	gone := func(ctx context.Context, e event.DeleteEvent, q controllers.Queue) {
		if ofVelero(e.Object) {
			b.Each(ctx, func(nab *oadpv1alpha1.NonAdminBackup) { // a backup in it that is being deleted need not wait
				if !nab.DeletionTimestamp.IsZero() {
					b.Add(q, controllers.RequestFor(nab))
				}
			})
		}
	}
	return controllers.Both(events, controllers.Events{DeleteFunc: gone})
}

// drillEvents: a drill that gets its verdict says whether its backup is good.
func (b *backups) drillEvents() controllers.Events {
	return controllers.On(controllers.Created,
		func(before, after *holdfastv1alpha1.RestoreDrill) bool {
			return backup.HasVerdict(after) && (!backup.HasVerdict(before) || before.UID != after.UID)
		},
		func(ctx context.Context, drill *holdfastv1alpha1.RestoreDrill, q controllers.Queue) {
			nab, found := b.Cached(ctx, client.ObjectKey{Namespace: drill.Namespace, Name: drill.Status.Backup})
			if found && backup.HasVerdict(drill) {
				b.Add(q, controllers.RequestFor(nab))
			}
		})
}
