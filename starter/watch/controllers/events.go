package controllers

import (
	"context"
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// Concerns reports whether a change of an object concerns its workflow. The finalizers are ours on such objects.
func Concerns(before, after client.Object, finalizers ...string) bool {
	return before.GetUID() != after.GetUID() ||
		before.GetGeneration() != after.GetGeneration() ||
		!before.GetDeletionTimestamp().Equal(after.GetDeletionTimestamp()) ||
		!maps.Equal(before.GetLabels(), after.GetLabels()) ||
		slices.ContainsFunc(finalizers, func(finalizer string) bool {
			return controllerutil.ContainsFinalizer(before, finalizer) && !controllerutil.ContainsFinalizer(after, finalizer)
		})
}

// Rewritten reports whether an object was written since: a resync shows it as it was.
func Rewritten(before, after client.Object) bool {
	return before.GetResourceVersion() != after.GetResourceVersion()
}

// Moments are events of an object beside its changes.
type Moments int

// An object is Created also in the first list, and CreatedSince only after it.
const (
	Created Moments = 1 << iota
	CreatedSince
	Deleted
)

// On calls do at these moments of an object, and after a change that matters.
func On[T client.Object](moments Moments, matters func(before, after T) bool, do func(context.Context, T, Queue)) Events {
	return Events{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q Queue) {
			if moments&Created != 0 || (moments&CreatedSince != 0 && !e.IsInInitialList) {
				do(ctx, e.Object.(T), q)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q Queue) {
			if before, after := e.ObjectOld.(T), e.ObjectNew.(T); matters(before, after) {
				do(ctx, after, q)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q Queue) {
			if moments&Deleted != 0 {
				do(ctx, e.Object.(T), q)
			}
		},
	}
}

// Both does what two Events do for the same objects, in this order.
func Both(first, second Events) Events {
	return Events{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q Queue) {
			first.Create(ctx, e, q)
			second.Create(ctx, e, q)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q Queue) {
			first.Update(ctx, e, q)
			second.Update(ctx, e, q)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q Queue) {
			first.Delete(ctx, e, q)
			second.Delete(ctx, e, q)
		},
	}
}

// OwnEvents are those of the kind's own objects: generation, deletion, labels and our finalizers matter, and what else also
// reports. Other changes of the status are our own, and signal no workflow. forced: a change signals without judging.
func (k *Kind[T]) OwnEvents(forced bool, also func(before, after client.Object) bool) Events {
	return Events{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q Queue) { k.Add(q, RequestFor(e.Object)) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q Queue) {
			before, after := e.ObjectOld, e.ObjectNew
			if before.GetUID() != after.GetUID() {
				k.Add(q, RequestFor(before))
			}
			if Concerns(before, after, k.Own.Finalizers...) || also(before, after) {
				k.Add(q, RequestFor(after).Forced(forced))
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q Queue) { k.Add(q, RequestFor(e.Object)) },
	}
}

// Never is for changes that never matter.
func Never(client.Object, client.Object) bool { return false }
