package controllers

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"holdfast.dev/holdfast/workflows/contract"
)

const (
	concurrentReconciles = 16
	// Retries after an error of Temporal start and end at these intervals; they never give up.
	retryFirst = 100 * time.Millisecond
	retryCap   = 5 * time.Second
	// cacheSyncTimeout: at the start the watcher waits for the API server; readiness shows it meanwhile.
	cacheSyncTimeout = 24 * time.Hour
)

// Request requests that one incarnation of an object is judged.
type Request struct {
	Namespace, Name, UID string
	// Force signals without judging from the cache, which may be out of date.
	Force bool
}

// Queue is where requests wait.
type Queue = workqueue.TypedRateLimitingInterface[Request]

// Events turns the events of a Source into requests in the workqueue.
type Events = handler.TypedFuncs[client.Object, Request]

// RequestFor is the request for an object that was read.
func RequestFor(object client.Object) Request {
	return Request{Namespace: object.GetNamespace(), Name: object.GetName(), UID: string(object.GetUID())}
}

func requestOf(ref contract.ObjectRef) Request {
	return Request{Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID}
}

func (r Request) ref() contract.ObjectRef {
	return contract.ObjectRef{Namespace: r.Namespace, Name: r.Name, UID: r.UID}
}

// Forced is the same request; with force, it signals without judging from the cache.
func (r Request) Forced(force bool) Request {
	r.Force = force
	return r
}

// intake is where the requests of one kind wait: those of events in the workqueue, all others in a channel before it.
type intake struct {
	requests chan event.TypedGenericEvent[Request]
	arrivals arrivals
	starts   *starts
	left     left
}

func newIntake() *intake {
	const plenty = 1024
	return &intake{requests: make(chan event.TypedGenericEvent[Request], plenty), starts: newStarts()}
}

// feed makes a builder's controller handle the waiting requests.
func (i *intake) feed(to *builder.TypedBuilder[Request], handle reconcile.TypedFunc[Request]) error {
	return to.WatchesRawSource(source.TypedChannel(i.requests, forward(i.addOwn))).
		WithOptions(controller.TypedOptions[Request]{
			MaxConcurrentReconciles: concurrentReconciles,
			CacheSyncTimeout:        cacheSyncTimeout,
			UsePriorityQueue:        new(true),
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[Request](retryFirst, retryCap),
		}).
		Complete(reconcile.TypedFunc[Request](func(ctx context.Context, request Request) (reconcile.Result, error) {
			result, err := handle(ctx, request)
			return i.ranked(request, result, err), err
		}))
}

// ranked has a request come again last, whatever its priority was, unless it comes again since its event still waits.
func (i *intake) ranked(request Request, result reconcile.Result, err error) reconcile.Result {
	if err == nil && !i.arrivals.wait(request) {
		result.Priority = new(handler.LowPriority)
	}
	return result
}

// forward enqueues requests that do not come from an informer.
func forward(add func(Queue, Request)) handler.TypedFuncs[Request, Request] {
	return handler.TypedFuncs[Request, Request]{
		GenericFunc: func(_ context.Context, e event.TypedGenericEvent[Request], q Queue) { add(q, e.Object) },
	}
}

// Add puts the request of an event into the workqueue.
func (i *intake) Add(q Queue, request Request) {
	i.arrivals.note(request, arrival{at: time.Now(), event: true})
	q.Add(request)
}

// addOwn puts a request into the workqueue that no event has caused.
func (i *intake) addOwn(q Queue, request Request) {
	i.arrivals.note(request, arrival{at: time.Now()})
	q.Add(request)
}

// Priorities beside the ordinary, zero. Objects that existed when the watcher started, and those judged without an event, come
// last, see handler.LowPriority.
const (
	priorityEnd   = 100
	priorityStart = -50
)

// AddEnd puts a request into the workqueue before all others: something has ended, and a tenant waits to see it.
func (i *intake) AddEnd(q Queue, request Request) { i.addPrior(q, request, priorityEnd) }

// AddStart puts a request for a new object into the workqueue, after those for objects that have started.
func (i *intake) AddStart(q Queue, request Request) { i.addPrior(q, request, priorityStart) }

func (i *intake) addPrior(q Queue, request Request, priority int) {
	ranked, ok := q.(priorityqueue.PriorityQueue[Request])
	if !ok {
		i.Add(q, request)
		return
	}
	i.arrivals.note(request, arrival{at: time.Now(), event: true})
	ranked.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, request)
}

// AddAfter puts a request into the workqueue later; the delay does not count as latency.
func (i *intake) AddAfter(q Queue, request Request, delay time.Duration) {
	i.arrivals.note(request, arrival{at: time.Now().Add(delay), event: true})
	q.AddAfter(request, delay)
}

// Enqueue adds a request to the workqueue unless the manager stops.
func (i *intake) Enqueue(ctx context.Context, request Request) {
	select {
	case i.requests <- event.TypedGenericEvent[Request]{Object: request}:
	case <-ctx.Done():
	}
}

// Started is called when an object has started that may have waited for its turn. began: it had not before this event.
func (i *intake) Started(request Request, began bool) { i.starts.started(request, began) }

// Waiting reports whether a request waits here for its turn: its workflow was not signalled.
func (i *intake) Waiting(request Request) bool { return i.starts.waits(request) }

// Gone is called when an object is gone that may have waited for its turn, or have one.
func (i *intake) Gone(request Request) { i.starts.left(request) }

// Requested empties the channel before the workqueue, for tests without a controller.
func (i *intake) Requested() []Request {
	var requests []Request
	for {
		select {
		case e := <-i.requests:
			requests = append(requests, e.Object)
		default:
			return requests
		}
	}
}
