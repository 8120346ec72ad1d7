package watch

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

// intake is where the requests of one kind wait until they are looked at: those of events in the workqueue, all others in a
// channel before it.
type intake struct {
	requests   chan event.TypedGenericEvent[Request]
	arrivals   arrivals
	beginnings *beginnings
}

func newIntake() *intake {
	const plenty = 1024
	return &intake{requests: make(chan event.TypedGenericEvent[Request], plenty), beginnings: newBeginnings()}
}

// feed makes a builder's controller take what is waiting and have it looked at.
func (i *intake) feed(to *builder.TypedBuilder[Request], look reconcile.TypedFunc[Request]) error {
	return to.WatchesRawSource(source.TypedChannel(i.requests, passOn(i.add))).
		WithOptions(controller.TypedOptions[Request]{
			MaxConcurrentReconciles: concurrentReconciles,
			CacheSyncTimeout:        cacheSyncTimeout,
			UsePriorityQueue:        new(true),
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[Request](retryFirst, retryCap),
		}).
		Complete(reconcile.TypedFunc[Request](func(ctx context.Context, request Request) (reconcile.Result, error) {
			result, err := look(ctx, request)
			if err == nil {
				result.Priority = new(handler.LowPriority) // whatever it came with, it comes again without an event
			}
			return result, err
		}))
}

// add puts a request into the workqueue.
func (i *intake) add(q queue, request Request) {
	i.arrivals.note(request, time.Now())
	q.Add(request)
}

// Priorities beside the ordinary, zero. What was there when the watcher started, and what is looked at without an event, comes
// last, see handler.LowPriority.
const (
	priorityEnd       = 100
	priorityBeginning = -50
)

// addEnd puts a request into the workqueue before all others: something has come to an end, and somebody waits to see it.
func (i *intake) addEnd(q queue, request Request) { i.addPrior(q, request, priorityEnd) }

// addBeginning puts a request for a new object into the workqueue, after those for what has begun.
func (i *intake) addBeginning(q queue, request Request) { i.addPrior(q, request, priorityBeginning) }

// addNew puts a request for an object in a phase into the workqueue that the cache has not had.
func (i *intake) addNew(q queue, request Request, phase string, atStart bool) {
	if !atStart && awaitsCreation(oadpv1alpha1.NonAdminPhase(phase)) {
		i.addBeginning(q, request)
		return
	}
	i.add(q, request)
}

func (i *intake) addPrior(q queue, request Request, priority int) {
	ranked, ok := q.(priorityqueue.PriorityQueue[Request])
	if !ok {
		i.add(q, request)
		return
	}
	i.arrivals.note(request, time.Now())
	ranked.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, request)
}

// addAfter puts a request into the workqueue later; the delay is wanted, and no latency.
func (i *intake) addAfter(q queue, request Request, delay time.Duration) {
	i.arrivals.note(request, time.Now().Add(delay))
	q.AddAfter(request, delay)
}

// enqueue hands a request to the workqueue, which takes it unless the manager stops.
func (i *intake) enqueue(ctx context.Context, request Request) {
	select {
	case i.requests <- event.TypedGenericEvent[Request]{Object: request}:
	case <-ctx.Done():
	}
}

// attend has serve look at the object of a request whose event came at a time, unless another controller serves these kinds.
func (i *intake) attend(w *Watcher, request Request, serve servant) (reconcile.Result, error) {
	if err := w.Paused(); err != nil {
		i.arrivals.take(request)
		w.Log.Debug("paused", zap.Error(err))
		return reconcile.Result{RequeueAfter: pausedInterval}, nil
	}
	return i.always(request, serve)
}

// servant looks at an object whose event came at a time.
type servant func(ref contract.ObjectRef, came time.Time) (reconcile.Result, error)

// always is attend for the kinds that no other controller serves.
func (i *intake) always(request Request, serve servant) (reconcile.Result, error) {
	came := i.arrivals.take(request)
	result, err := serve(contract.ObjectRef{Namespace: request.Namespace, Name: request.Name, UID: request.UID}, came)
	if err != nil {
		i.arrivals.note(request, came) // tried again: the event still waits for its signal
		return reconcile.Result{}, err
	}
	return result, nil
}

// requestFor is the request for an object that was read.
func requestFor(object client.Object) Request {
	return Request{Namespace: object.GetNamespace(), Name: object.GetName(), UID: string(object.GetUID())}
}

// forced is the same request, to be signalled, if so, without judging from the cache.
func (r Request) forced(force bool) Request {
	r.Force = force
	return r
}

// eachCached calls do for every object of a list's kind in the cache that matches. The objects are the cache's own.
func eachCached[T client.Object](
	ctx context.Context, w *Watcher, list client.ObjectList, do func(T), matching ...client.ListOption,
) {
	err := w.gatherer.Reader.List(ctx, list, append(matching, client.UnsafeDisableDeepCopy)...)
	if err == nil {
		err = meta.EachListItem(list, func(item runtime.Object) error {
			do(item.(T))
			return nil
		})
	}
	if err != nil {
		w.Log.Error("list in the cache", zap.String("kind", fmt.Sprintf("%T", list)), zap.Error(err))
	}
}
