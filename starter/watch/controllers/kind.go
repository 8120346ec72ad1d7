package controllers

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"time"

	"go.uber.org/zap"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"holdfast.dev/holdfast/k8s/metrics"
	"holdfast.dev/holdfast/starter/watch/caches"
	"holdfast.dev/holdfast/starter/watch/trim"
	"holdfast.dev/holdfast/workflows/connect"
	"holdfast.dev/holdfast/workflows/contract"
)

const pausedInterval = 10 * time.Second

// Env is what the watchers of all kinds share.
type Env struct {
	ClusterID     string
	OADPNamespace string
	// ProgressInterval is the shortest time between two signals for progress alone.
	ProgressInterval time.Duration
	// ResyncInterval is how often every object is checked without an event.
	ResyncInterval time.Duration
	// Client reads the cache and writes to the API server.
	Client    client.Client
	Workflows connect.Workflows
	// Follows reports whether another watcher leads, which signals first. nil: there is no other.
	Follows func() bool
	// Paused returns an error while another controller serves the kinds that are Shared.
	Paused func() error
	Log    *zap.Logger
}

// Kind is one kind of objects that is watched. Its zero fields do nothing; Env, Name, Workflow, Sources and Judge or Turns are
// required.
type Kind[T client.Object] struct {
	*Env
	// Name of its controller.
	Name string
	// Workflow serves an object of the kind.
	Workflow contract.Kind
	// Reported is the kind as the metrics name it; Workflow.Kubernetes if empty.
	Reported string
	// Shared: another controller may serve it, and nothing is signalled while Env.Paused returns an error.
	Shared bool
	// Own is how the kind itself is cached.
	Own *caches.Kind
	// Sources are the objects whose events concern an object of the kind; they are cached. OwnEvents are known once the kind is
	// made.
	Sources []Source
	// Judge makes a View of one object by a reader. Without Judge another program starts the workflow: every event signals it
	// while it runs.
	Judge func(ctx context.Context, from client.Reader, ref contract.ObjectRef) (View, error)
	// InTurns: new objects start in turns, see starts.
	InTurns bool
	// PolicyMatters reports whether the policy in force matters for an object. If the cache has not kept its whole spec, its
	// workflow judges.
	PolicyMatters func(T) bool
	// WorkflowHasPolicy: what the policy allows of an object only its workflow judges, which also does so from time to time. It is
	// signalled when the policy changes, not when it is first read.
	WorkflowHasPolicy bool
	// SignalIfLost reports whether only a signal starts the workflow of an object that Temporal may have lost.
	SignalIfLost func(T) bool
	// Orphans calls do for every deleted object that has left other objects.
	Orphans func(ctx context.Context, do func(contract.ObjectRef)) error
	// Phases is the gauge of the kind's objects by phase.
	Phases *metrics.Phases
	// Unfinished reports whether an object waits for Holdfast, or for what serves it, and not for its tenant.
	Unfinished func(T) bool
	// Census begins a census of the kind: each is called for every object.
	Census func(ctx context.Context, census *metrics.Census) (each func(T), err error)

	// Further adds further controllers to a manager.
	Further func(mgr manager.Manager) error
	// Volumes are the Velero objects of the kind that have volumes.
	Volumes *Volumes

	*intake
}

// Source is a kind of objects, and which objects are to be judged when one of them changes.
type Source struct {
	Of     *caches.Kind
	Events Events
}

// Watcher is a Kind of any type.
type Watcher interface {
	// AddTo adds the watcher to a manager.
	AddTo(mgr manager.Manager) error
	// Watched are the kinds that are cached for it.
	Watched() []*caches.Kind
	// Lead has every object judged soon that this watcher has left to the leader: it leads now.
	Lead(ctx context.Context)
	// RequeueAll has every object judged soon, since Temporal may have lost its workflow.
	RequeueAll(ctx context.Context)
	// PolicyWritten has every object judged soon for which the policy matters. first: it was not known before.
	PolicyWritten(ctx context.Context, first bool)
	// Count adds its objects to a census.
	Count(ctx context.Context, census *metrics.Census) error
}

// New makes a kind ready to be watched.
func New[T client.Object](kind Kind[T]) *Kind[T] {
	kind.intake, kind.Volumes = newIntake(), &Volumes{}
	kind.Reported = cmp.Or(kind.Reported, kind.Workflow.Kubernetes)
	return &kind
}

// AddTo implements Watcher.
func (k *Kind[T]) AddTo(mgr manager.Manager) error {
	controller := builder.TypedControllerManagedBy[Request](mgr).Named(k.Name)
	for _, source := range k.Sources {
		controller.Watches(source.Of.Object, source.Events)
	}
	if err := k.feed(controller, k.Reconcile); err != nil {
		return fmt.Errorf("build the watcher %s: %w", k.Name, err)
	}
	if k.InTurns {
		if err := mgr.Add(manager.RunnableFunc(k.handOver)); err != nil {
			return fmt.Errorf("add the turns of %s to the manager: %w", k.Name, err)
		}
	}
	if k.Further != nil {
		return k.Further(mgr)
	}
	return nil
}

// Watched implements Watcher.
func (k *Kind[T]) Watched() []*caches.Kind {
	var kinds []*caches.Kind
	for _, source := range k.Sources {
		kinds = append(kinds, source.Of)
	}
	return kinds
}

// Reconcile signals the workflow of an object if a step is due. It runs again after the resync interval.
func (k *Kind[T]) Reconcile(ctx context.Context, request Request) (reconcile.Result, error) {
	arrived := k.arrivals.take(request)
	if err := k.paused(); err != nil {
		k.Log.Debug("paused", zap.Error(err))
		return reconcile.Result{RequeueAfter: pausedInterval}, nil
	}
	if wait := k.headStart(request, arrived); wait > 0 {
		k.arrivals.note(request, arrived)
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	again, err := k.judge(ctx, request, arrived)
	if err != nil {
		k.arrivals.note(request, arrived) // retried: the event still waits for its signal
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: again}, nil
}

func (k *Kind[T]) paused() error {
	if !k.Shared {
		return nil
	}
	return k.Paused()
}

func (k *Kind[T]) judge(ctx context.Context, request Request, arrived arrival) (again time.Duration, err error) {
	ref, send := request.ref(), k.sender(request, k.latencySince(request, arrived))
	if k.Judge == nil {
		return 0, send(k.Reported, running(ctx, k.Workflow, ref, "changed"))
	}
	view, err := k.Judge(ctx, k.Client, ref)
	if err != nil {
		return 0, err
	}
	if wait := k.leave(request, view, arrived.event); wait > 0 {
		return wait, nil
	}
	if !k.mayStart(request, view.Unstarted) {
		return 0, nil
	}
	gone := !view.Found && !view.Due // one that is gone, and of which something is left, is judged again
	if err := k.message(ctx, ref, view, request.Force, send); err != nil || request.Force || gone {
		return 0, err
	}
	return k.next(view), nil
}

// next returns when an object is judged again without an event.
func (k *Kind[T]) next(view View) time.Duration {
	if view.Again > 0 {
		return min(view.Again, k.ResyncInterval)
	}
	return k.ResyncInterval
}

// Each calls do for every object of the kind in the cache that matches. The objects are the cache's own.
func (k *Kind[T]) Each(ctx context.Context, do func(T), matching ...client.ListOption) {
	k.EachOf(ctx, Empty[T](), func(object client.Object) { do(object.(T)) }, matching...)
}

// EachOf calls do for every object of any kind in the cache that matches.
func (k *Kind[T]) EachOf(ctx context.Context, kind client.Object, do func(client.Object), matching ...client.ListOption) {
	if err := caches.Each(ctx, k.Client, kind, do, matching...); err != nil {
		k.Log.Error("list in the cache", zap.String("kind", fmt.Sprintf("%T", kind)), zap.Error(err))
	}
}

// Cached returns the object of a name in the cache.
func (k *Kind[T]) Cached(ctx context.Context, key client.ObjectKey) (object T, found bool) {
	object = Empty[T]()
	if err := k.Client.Get(ctx, key, object); err != nil {
		return object, false // not there, or not yet: it will have its own event
	}
	return object, true
}

// Empty is an empty object of a type.
func Empty[T client.Object]() T { return reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T) }

// RequeueAll implements Watcher.
func (k *Kind[T]) RequeueAll(ctx context.Context) {
	if k.Judge == nil {
		return
	}
	k.Each(ctx, func(object T) {
		k.Enqueue(ctx, RequestFor(object).Forced(k.SignalIfLost != nil && k.SignalIfLost(object)))
	})
	if k.Orphans == nil {
		return
	}
	if err := k.Orphans(ctx, func(ref contract.ObjectRef) { k.Enqueue(ctx, requestOf(ref)) }); err != nil {
		k.Log.Error("list what objects have left", zap.Error(err))
	}
}

// PolicyWritten implements Watcher.
func (k *Kind[T]) PolicyWritten(ctx context.Context, first bool) {
	if k.PolicyMatters == nil || (k.WorkflowHasPolicy && first) {
		return
	}
	k.Each(ctx, func(object T) {
		if k.PolicyMatters(object) {
			k.Enqueue(ctx, RequestFor(object).Forced(k.WorkflowHasPolicy || trim.OmittedBytes(object) > 0))
		}
	})
}
