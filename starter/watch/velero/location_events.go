package velero

import (
	"context"
	"maps"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"holdfast.dev/holdfast/activities/location"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/starter/watch/controllers"
)

// locationEvents: a rejection is judged once more. Changes of its Secret while no watcher ran cannot be judged here.
func (l *locations) locationEvents() controllers.Events {
	events := l.OwnEvents(false, rejected(nonAdminLocations))
	events.CreateFunc = func(_ context.Context, e event.CreateEvent, q controllers.Queue) {
		found := e.Object.(*oadpv1alpha1.NonAdminBackupStorageLocation)
		l.Add(q, controllers.RequestFor(found).Forced(location.RefusedForSecret(found)))
	}
	return events
}

// veleroEvents: Velero's status of a location, and changes by hand.
func (l *locations) veleroEvents() controllers.Events {
	return controllers.On(controllers.Created|controllers.Deleted, func(before, after *velerov1.BackupStorageLocation) bool {
		return before.Generation != after.Generation || before.UID != after.UID || !maps.Equal(before.Labels, after.Labels) ||
			before.Status.Phase != after.Status.Phase || validatedAnew(before, after) ||
			location.PlainMessage(before.Status) != location.PlainMessage(after.Status)
	}, func(ctx context.Context, made *velerov1.BackupStorageLocation, q controllers.Queue) {
		l.addOrigin(ctx, made, q, false)
	})
}

// validatedAnew reports whether Velero has ended a validation that was requested because of another Secret, or its first one:
// there may be a newer Secret already.
func validatedAnew(before, after *velerov1.BackupStorageLocation) bool {
	return after.Annotations[oadpv1alpha1.CopiedVersionAnnotation] != "" &&
		before.Status.LastValidationTime == nil && after.Status.LastValidationTime != nil
}

// requestEvents: decisions of administrators, and how the approval's workflow answers them.
func (l *locations) requestEvents() controllers.Events {
	return controllers.On(controllers.Created|controllers.Deleted, controllers.Rewritten,
		func(ctx context.Context, request client.Object, q controllers.Queue) {
			l.addOrigin(ctx, request, q, false)
		})
}

// secretEvents: a tenant's Secret that a location names, or the copy of one. Only their metadata are cached here; the worker
// judges the content.
func (l *locations) secretEvents() controllers.Events {
	return controllers.Events{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q controllers.Queue) { l.secretChanged(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q controllers.Queue) {
			if e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion() {
				return
			}
			if e.ObjectNew.GetNamespace() == l.OADPNamespace {
				// Our own writes record another version of the copied Secret.
				version := oadpv1alpha1.CopiedVersionAnnotation
				byHand := e.ObjectOld.GetAnnotations()[version] == e.ObjectNew.GetAnnotations()[version]
				l.addOrigin(ctx, e.ObjectNew, q, byHand)
			}
			l.secretChanged(ctx, e.ObjectNew, q)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q controllers.Queue) {
			l.addOrigin(ctx, e.Object, q, false)
			l.secretChanged(ctx, e.Object, q)
		},
	}
}

// secretChanged judges the locations that a tenant's Secret may concern. A verdict on the Secret's content cannot be judged
// here.
func (l *locations) secretChanged(ctx context.Context, secret client.Object, q controllers.Queue) {
	l.Each(ctx, func(object *oadpv1alpha1.NonAdminBackupStorageLocation) {
		spec := object.Spec.BackupStorageLocationSpec
		names := spec != nil && spec.Credential != nil && spec.Credential.Name == secret.GetName()
		undecided := object.Status.Phase != oadpv1alpha1.NonAdminPhaseCreated
		if names || undecided { // an approved location may name another Secret than its pending change
			l.Add(q, controllers.RequestFor(object).Forced(names && undecided))
		}
	}, client.InNamespace(secret.GetNamespace()))
}

// addOrigin requests a check of the location that an object of the OADP namespace names as its origin.
func (l *locations) addOrigin(ctx context.Context, made client.Object, q controllers.Queue, force bool) {
	key, _ := owner.Location.Hint(made)
	if made.GetNamespace() != l.OADPNamespace || !owner.Location.Called(made, key.Namespace, key.Name) {
		return
	}
	object, found := l.Cached(ctx, key)
	if found {
		l.Add(q, controllers.RequestFor(object).Forced(force))
	}
	// That location may be deleted, and another have its name; or it does not exist yet: then it will have its own event.
	if owner.Location.ForAnother(made, object) {
		l.Add(q, controllers.Request{Namespace: key.Namespace, Name: key.Name, UID: string(owner.Location.UID(made))})
	}
}
