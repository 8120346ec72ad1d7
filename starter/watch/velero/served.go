package velero

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/lifecycle"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/velero"
	"holdfast.dev/holdfast/starter/watch/caches"
	"holdfast.dev/holdfast/starter/watch/controllers"
	"holdfast.dev/holdfast/workflows/contract"
)

// served is what NonAdminBackups and NonAdminRestores have in common: Velero serves one object for each.
type served[T client.Object] struct {
	*controllers.Kind[T]
	env    *Env
	pool   contract.Pool
	origin owner.Origin
	// made is the kind of the Velero object, and volumeLabel names the one that a volume belongs to.
	made        *caches.Kind
	volumeLabel string
	// moved: the Velero object may have another position. atOnce: a change is signalled at once that is not one of the phase.
	moved, atOnce func(before, after client.Object) bool
	// deletion is what the spec says about a deletion, empty if nothing; nil where no spec says anything. Deletions of such a
	// kind begin in turns.
	deletion func(object client.Object) string
}

func (s *served[T]) backingOff(object client.Object) bool { return backingOff(s.Own.Phase(object)) }

func (s *served[T]) awaitsCreation(object client.Object) bool {
	return awaitsCreation(s.Own.Phase(object))
}

// started reports whether the workflow of an object has shown that it runs, or ran; of a deletion in turns, that it has begun.
func (s *served[T]) started(object client.Object) bool {
	if s.deletion != nil && !s.awaitsCreation(object) && lifecycle.DeletionRequested(object) {
		return lifecycle.Phase(object) == oadpv1alpha1.NonAdminPhaseDeleting
	}
	return !s.awaitsCreation(object) || k8s.Waited(k8s.Conditions(object))
}

// deletedAsRequested reports whether all that an event says is that the object is being deleted, as its spec requested before.
// Its workflow, signalled for the spec, does that itself.
func (s *served[T]) deletedAsRequested(before, after client.Object) bool {
	requested := s.deletion != nil && s.deletion(after) != ""
	if !requested || before.GetDeletionTimestamp() != nil || s.Waiting(controllers.RequestFor(after)) {
		return false
	}
	deleted := after.DeepCopyObject().(client.Object)
	deleted.SetGeneration(before.GetGeneration())
	deleted.SetDeletionTimestamp(nil)
	return s.deletion(before) == s.deletion(after) && !controllers.Concerns(before, deleted, s.Own.Finalizers...)
}

// adding enqueues objects that an event of another object concerns.
func (s *served[T]) adding(q controllers.Queue) func(T) {
	return func(object T) { s.Add(q, controllers.RequestFor(object)) }
}

// eachBackingOff calls do for every object whose verdict may have changed.
func (s *served[T]) eachBackingOff(ctx context.Context, do func(T), matching ...client.ListOption) {
	s.Each(ctx, func(object T) {
		if s.backingOff(object) {
			do(object)
		}
	}, matching...)
}

// of finds the object that a Velero object names as its origin, in the cache.
func (s *served[T]) of(ctx context.Context, made client.Object) (object T, found bool) {
	key, named := s.origin.Hint(made)
	if !named {
		return object, false
	}
	return s.Cached(ctx, key)
}

// released reports whether nothing is left of an object that is gone, as its spec requested: its workflow has nothing to do for
// it. Whether it had our finalizer says nothing: the API server deletes an object with the write that removes the last one, and
// the event shows it as it was before.
func (s *served[T]) released(ctx context.Context, gone client.Object) bool {
	nab, is := gone.(*oadpv1alpha1.NonAdminBackup)
	if !is || s.deletion == nil || s.deletion(gone) == "" {
		return false
	}
	finder := velero.Finder{Reader: s.Client, ClusterID: s.ClusterID, OADPNamespace: s.OADPNamespace}
	found, err := finder.Backup(ctx, nab)
	return err == nil && found.Made == nil && !found.Foreign
}

// events: generation, deletion, labels and our finalizer matter. A change of the status alone is our own, and signals no
// workflow, except a rejection.
func (s *served[T]) events() controllers.Events {
	return controllers.Events{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q controllers.Queue) {
			if !e.IsInInitialList && s.awaitsCreation(e.Object) {
				s.AddStart(q, controllers.RequestFor(e.Object))
			} else {
				s.Add(q, controllers.RequestFor(e.Object))
			}
			s.env.PositionsChanged()
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q controllers.Queue) {
			before, after := e.ObjectOld, e.ObjectNew
			if before.GetUID() != after.GetUID() {
				s.AddEnd(q, controllers.RequestFor(before))
			}
			if s.started(after) {
				s.Started(controllers.RequestFor(after), !s.started(before) || before.GetUID() != after.GetUID())
			}
			switch {
			case !controllers.Concerns(before, after, s.Own.Finalizers...) && !rejected(s.Own)(before, after),
				s.deletedAsRequested(before, after):
			case lifecycle.DeletionRequested(after):
				s.AddEnd(q, controllers.RequestFor(after))
			default:
				s.Add(q, controllers.RequestFor(after))
			}
			if newPhase(s.Own)(before, after) {
				s.env.PositionsChanged()
			}
			if s.beganToWait(before, after) {
				s.env.Turns.BeganToWait(ctx, s.pool, after)
			}
			if stalls(before, after) {
				s.env.Turns.NotNeeded(s.pool, after)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q controllers.Queue) {
			s.turnGone(e.Object)
			s.Gone(controllers.RequestFor(e.Object))
			if !s.released(ctx, e.Object) {
				s.AddEnd(q, controllers.RequestFor(e.Object))
			}
		},
	}
}

// veleroEvents are those of the Velero objects: a new phase or a deletion at once, progress alone at most once in each progress
// interval.
func (s *served[T]) veleroEvents() controllers.Events {
	return controllers.Events{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q controllers.Queue) {
			s.env.PositionsChanged()
			// Our own creation needs no signal, and the cache of the other kind may be behind. An object that was missing does.
			// So does one that Velero has begun with: the watcher was cut off from the API server.
			if object, found := s.of(ctx, e.Object); found && (!s.awaitsCreation(object) || s.made.Phase(e.Object) != "") {
				s.Add(q, controllers.RequestFor(object))
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q controllers.Queue) {
			before, after := e.ObjectOld, e.ObjectNew
			was, is := s.made.Phase(before), s.made.Phase(after)
			if was != is || s.moved(before, after) {
				s.env.PositionsChanged()
			}
			if velero.HoldsTurn(was) && !velero.HoldsTurn(is) {
				s.turnEnded(ctx, after)
			}
			object, found := s.of(ctx, after)
			switch {
			case !found || before.GetResourceVersion() == after.GetResourceVersion():
			case was != is && velero.Finished(is):
				s.AddEnd(q, controllers.RequestFor(object))
			case was != is || before.GetUID() != after.GetUID() || s.atOnce(before, after):
				s.Add(q, controllers.RequestFor(object))
			default:
				s.AddAfter(q, controllers.RequestFor(object), s.ProgressInterval)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q controllers.Queue) {
			s.env.PositionsChanged()
			s.Volumes.Forget(e.Object.GetName())
			if velero.HoldsTurn(s.made.Phase(e.Object)) {
				s.turnEnded(ctx, e.Object)
			}
			if object, found := s.of(ctx, e.Object); found {
				s.AddEnd(q, controllers.RequestFor(object))
				return
			}
			// Another's object: it may have had the name of the Velero object for one that is BackingOff.
			s.eachBackingOff(ctx, s.adding(q))
		},
	}
}

// namespaceEvents: our finalizer must not block a namespace that is being deleted. An object that was already being deleted
// gets no event of its own then.
func (s *served[T]) namespaceEvents() controllers.Events {
	terminating := func(_, namespace client.Object) bool { return !namespace.GetDeletionTimestamp().IsZero() }
	return controllers.On(controllers.Created, terminating, func(ctx context.Context, namespace client.Object, q controllers.Queue) {
		if terminating(nil, namespace) {
			s.Each(ctx, s.adding(q), client.InNamespace(namespace.GetName()))
		}
	})
}

// volumeEvents: progress of a volume is progress of its Velero object.
func (s *served[T]) volumeEvents() controllers.Events {
	enqueue := func(ctx context.Context, volume client.Object, q controllers.Queue) {
		name := volume.GetLabels()[s.volumeLabel]
		if name == "" {
			return
		}
		s.Volumes.Add(name)
		of := s.made.Object.DeepCopyObject().(client.Object)
		if s.Client.Get(ctx, client.ObjectKey{Namespace: s.OADPNamespace, Name: name}, of) != nil {
			return // not there, or not yet: it will have its own event
		}
		if object, found := s.of(ctx, of); found {
			s.AddAfter(q, controllers.RequestFor(object), s.ProgressInterval)
		}
	}
	return controllers.On(controllers.Created, controllers.Rewritten, enqueue)
}
