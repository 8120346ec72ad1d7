package velero

import (
	"context"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"holdfast.dev/holdfast/activities/download"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/watch/watched"
)

// downloadEvents: generation, deletion and labels matter. A change of the status alone is our own, and signals no workflow,
// with two exceptions. A refusal is judged once more, because what it depends on may have changed before the cache had the
// refusal. A new expiration time has the request judged at that time.
func (d *downloads) downloadEvents() watched.Events {
	return watched.Events{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q watched.Queue) {
			d.Add(q, watched.RequestFor(e.Object))
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q watched.Queue) {
			before, after := e.ObjectOld.(*oadpv1alpha1.NonAdminDownloadRequest), e.ObjectNew.(*oadpv1alpha1.NonAdminDownloadRequest)
			if before.UID != after.UID {
				d.Add(q, watched.RequestFor(before))
			}
			if watched.Concerns(before, after, "") || rejected(before, after) {
				d.Add(q, watched.RequestFor(after))
			}
			if expires := download.ExpiresAt(after); !expires.Equal(download.ExpiresAt(before)) {
				d.AddAfter(q, watched.RequestFor(after), time.Until(expires))
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q watched.Queue) {
			d.Add(q, watched.RequestFor(e.Object))
		},
	}
}

// veleroEvents: an answer, and a deletion. A creation is normally our own and needs no signal. It does if the request is gone,
// so that the Velero object is left over, or if it was answered while no watcher ran.
func (d *downloads) veleroEvents() watched.Events {
	enqueue := func(object client.Object, q watched.Queue) {
		if ref, ours := download.OriginOf(object.(*velerov1.DownloadRequest)); ours {
			d.Add(q, watched.Request{Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID})
		}
	}
	return watched.Events{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q watched.Queue) {
			made := e.Object.(*velerov1.DownloadRequest)
			if made.Status.Phase == "" && d.awaitsAnswer(ctx, made) {
				return
			}
			enqueue(made, q)
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q watched.Queue) {
			before, after := e.ObjectOld.(*velerov1.DownloadRequest), e.ObjectNew.(*velerov1.DownloadRequest)
			if before.Status.Phase != after.Status.Phase || before.UID != after.UID {
				enqueue(after, q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q watched.Queue) { enqueue(e.Object, q) },
	}
}

// awaitsAnswer: in the cache, the request for which a Velero DownloadRequest was made exists.
func (d *downloads) awaitsAnswer(ctx context.Context, made *velerov1.DownloadRequest) bool {
	ref, ours := download.OriginOf(made)
	if !ours {
		return false
	}
	nadr, found := d.Cached(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name})
	return found && string(nadr.UID) == ref.UID
}

// eachRefused has the matching refused requests judged.
func (d *downloads) eachRefused(
	ctx context.Context, q watched.Queue, match func(velerov1.DownloadTarget) bool, matching ...client.ListOption,
) {
	d.Each(ctx, func(nadr *oadpv1alpha1.NonAdminDownloadRequest) {
		if backingOff(nadr) && match(nadr.Spec.Target) {
			d.Add(q, watched.RequestFor(nadr))
		}
	}, matching...)
}

// subjectEvents: a backup or restore that is created, or gets its Velero object, may change the verdict on the requests that
// name it.
func (d *downloads) subjectEvents(kind string) watched.Events {
	enqueue := func(ctx context.Context, object client.Object, q watched.Queue) {
		d.eachRefused(ctx, q, func(target velerov1.DownloadTarget) bool {
			return download.TargetIs(target, kind, object.GetName())
		}, client.InNamespace(object.GetNamespace()))
	}
	return watched.Events{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q watched.Queue) { enqueue(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q watched.Queue) {
			if phaseOf(e.ObjectOld) != phaseOf(e.ObjectNew) {
				enqueue(ctx, e.ObjectNew, q)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q watched.Queue) { enqueue(ctx, e.Object, q) },
	}
}

// veleroSubjectEvents: so may its Velero object, which writes files in a later phase.
func (d *downloads) veleroSubjectEvents() watched.Events {
	enqueue := func(ctx context.Context, object client.Object, q watched.Queue) {
		origin, kind := owner.Backup, oadpv1alpha1.KindNonAdminBackup
		if _, is := object.(*velerov1.Restore); is {
			origin, kind = owner.Restore, oadpv1alpha1.KindNonAdminRestore
		}
		key, named := origin.Hint(object)
		if !named {
			return
		}
		d.eachRefused(ctx, q, func(target velerov1.DownloadTarget) bool {
			return download.TargetIs(target, kind, key.Name)
		}, client.InNamespace(key.Namespace))
	}
	return watched.Events{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q watched.Queue) { enqueue(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q watched.Queue) {
			if phaseOf(e.ObjectOld) != phaseOf(e.ObjectNew) {
				enqueue(ctx, e.ObjectNew, q)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q watched.Queue) { enqueue(ctx, e.Object, q) },
	}
}

// locationEvents: so may a tenant's storage location that is created or deleted.
func (d *downloads) locationEvents() watched.Events {
	enqueue := func(ctx context.Context, object client.Object, q watched.Queue) {
		if key, named := owner.Location.Hint(object); named {
			d.eachRefused(ctx, q, func(velerov1.DownloadTarget) bool { return true }, client.InNamespace(key.Namespace))
		}
	}
	return watched.Events{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q watched.Queue) { enqueue(ctx, e.Object, q) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q watched.Queue) { enqueue(ctx, e.Object, q) },
	}
}
