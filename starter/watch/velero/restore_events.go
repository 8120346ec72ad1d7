package velero

import (
	"context"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/starter/watch/controllers"
)

// backupEvents: a backup that is created, deleted or becomes ready may change the verdict on the restores that name it.
func (r *restores) backupEvents() controllers.Events {
	matters := func(before, after client.Object) bool {
		return newPhase(nonAdminBackups)(before, after) || controllers.Concerns(before, after, nonAdminBackups.Finalizers...)
	}
	enqueue := func(ctx context.Context, backup client.Object, q controllers.Queue) {
		r.eachBackingOff(ctx, func(nar *oadpv1alpha1.NonAdminRestore) {
			if spec := nar.Spec.RestoreSpec; spec != nil && spec.BackupName == backup.GetName() {
				r.Add(q, controllers.RequestFor(nar))
			}
		}, client.InNamespace(backup.GetNamespace()))
	}
	return controllers.On(controllers.Created|controllers.Deleted, matters, enqueue)
}

// veleroBackupEvents: so may its Velero Backup.
func (r *restores) veleroBackupEvents() controllers.Events {
	matters := func(before, after *velerov1.Backup) bool {
		return before.Status.Phase != after.Status.Phase || !before.DeletionTimestamp.Equal(after.DeletionTimestamp) ||
			before.Spec.StorageLocation != after.Spec.StorageLocation
	}
	enqueue := func(ctx context.Context, made *velerov1.Backup, q controllers.Queue) {
		if key, named := owner.Backup.Hint(made); named {
			r.eachBackingOff(ctx, r.adding(q), client.InNamespace(key.Namespace))
		}
	}
	return controllers.On(controllers.Created|controllers.Deleted, matters, enqueue)
}

// locationEvents: so may the location that holds it; an administrator's concerns every tenant. Velero validates one again about
// once a minute.
func (r *restores) locationEvents() controllers.Events {
	return controllers.On(controllers.Created|controllers.Deleted, newPhase(veleroLocations),
		func(ctx context.Context, location client.Object, q controllers.Queue) {
			if key, named := owner.Location.Hint(location); named {
				r.eachBackingOff(ctx, r.adding(q), client.InNamespace(key.Namespace))
				return
			}
			r.eachBackingOff(ctx, r.adding(q))
		})
}
