package velero

import (
	"context"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"holdfast.dev/holdfast/activities/download"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/starter/watch/caches"
	"holdfast.dev/holdfast/starter/watch/controllers"
)

// downloadEvents: a refusal is judged once more. A new expiration time has the request judged at that time.
func (d *downloads) downloadEvents() controllers.Events {
	expires := func(_ context.Context, e event.UpdateEvent, q controllers.Queue) {
		before, after := e.ObjectOld.(*oadpv1alpha1.NonAdminDownloadRequest), e.ObjectNew.(*oadpv1alpha1.NonAdminDownloadRequest)
		if expires := download.ExpiresAt(after); !expires.Equal(download.ExpiresAt(before)) {
			d.AddAfter(q, controllers.RequestFor(after), time.Until(expires))
		}
	}
	return controllers.Both(d.OwnEvents(false, rejected(nonAdminDownloads)), controllers.Events{UpdateFunc: expires})
}

// veleroEvents: an answer, and a deletion. A creation is normally our own and needs no signal. It does if the request is gone,
// so that the Velero object is left over, or if it was answered while no watcher ran.
func (d *downloads) veleroEvents() controllers.Events {
	enqueue := func(_ context.Context, made client.Object, q controllers.Queue) {
		if ref, ours := downloadOrigin(made); ours {
			d.Add(q, controllers.Request{Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID})
		}
	}
	events := controllers.On(controllers.Deleted, func(before, after client.Object) bool {
		return newPhase(veleroDownloads)(before, after) || before.GetUID() != after.GetUID()
	}, enqueue)
	events.CreateFunc = func(ctx context.Context, e event.CreateEvent, q controllers.Queue) {
		if veleroDownloads.Phase(e.Object) != "" || !d.awaitsAnswer(ctx, e.Object) {
			enqueue(ctx, e.Object, q)
		}
	}
	return events
}

// awaitsAnswer: in the cache, the request for which a Velero DownloadRequest was made exists.
func (d *downloads) awaitsAnswer(ctx context.Context, made client.Object) bool {
	ref, ours := downloadOrigin(made)
	if !ours {
		return false
	}
	nadr, found := d.Cached(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name})
	return found && string(nadr.UID) == ref.UID
}

// eachRefused has the matching refused requests judged.
func (d *downloads) eachRefused(
	ctx context.Context, q controllers.Queue, match func(velerov1.DownloadTarget) bool, matching ...client.ListOption,
) {
	d.Each(ctx, func(nadr *oadpv1alpha1.NonAdminDownloadRequest) {
		if backingOff(string(nadr.Status.Phase)) && match(nadr.Spec.Target) {
			d.Add(q, controllers.RequestFor(nadr))
		}
	}, matching...)
}

// subjectEvents: a backup or restore that is created, or gets its Velero object, may change the verdict on the requests that
// name it. So may its Velero object, which writes files in a later phase. named is the backup or restore that it is, or is of.
func (d *downloads) subjectEvents(
	of *caches.Kind, kind string, named func(metav1.Object) (types.NamespacedName, bool),
) controllers.Events {
	return controllers.On(controllers.Created|controllers.Deleted, newPhase(of),
		func(ctx context.Context, object client.Object, q controllers.Queue) {
			if subject, is := named(object); is {
				d.eachRefused(ctx, q, func(target velerov1.DownloadTarget) bool {
					return download.TargetIs(target, kind, subject.Name)
				}, client.InNamespace(subject.Namespace))
			}
		})
}

// locationEvents: so may a tenant's storage location that is created or deleted.
func (d *downloads) locationEvents() controllers.Events {
	return controllers.On(controllers.Created|controllers.Deleted, controllers.Never,
		func(ctx context.Context, location client.Object, q controllers.Queue) {
			if key, named := owner.Location.Hint(location); named {
				d.eachRefused(ctx, q, func(velerov1.DownloadTarget) bool { return true }, client.InNamespace(key.Namespace))
			}
		})
}
