package queue

import (
	"cmp"
	"context"
	"slices"
	"time"

	"go.uber.org/zap"
	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/metrics"
	"holdfast.dev/holdfast/starter/watch/caches"
)

const (
	// A round of queue positions begins this long after a change, and at least this long after the last round.
	delay    = time.Second
	interval = 10 * time.Second
	// While objects wait for their turns there is a round at least this often: no event says that their order has changed.
	waitingInterval = 30 * time.Second
	patchRate       = 10 // a second
	// Up to this position every change is shown; beyond it, only moves by a tenth.
	exactUpTo = 20
)

// Positions keeps status.queueInfo. It is a projection of Velero's queue that no single workflow can see, so only the leading
// watcher writes it, without signalling a workflow.
type Positions struct {
	// Client reads the cache and writes to the API server.
	Client        client.Client
	OADPNamespace string
	// Turns is the queue before Velero.
	Turns Turns
	// Paused returns an error while another controller serves the same kinds.
	Paused func() error
	Log    *zap.Logger

	dirty chan struct{}
	again <-chan time.Time // of the next round, if objects wait for their turns
}

// New returns positions that have not changed.
func New(of Positions) *Positions {
	of.dirty = make(chan struct{}, 1)
	return &of
}

// Changed has the positions computed again soon.
func (p *Positions) Changed() { wake(p.dirty) }

// wake lets the goroutine that waits at a channel go on, now or once it waits.
func wake(dirty chan<- struct{}) {
	select {
	case dirty <- struct{}{}:
	default:
	}
}

// Run keeps the positions. All are due at the start: there may have been no leader for a while.
func (p *Positions) Run(ctx context.Context) {
	p.Changed()
	limiter := rate.NewLimiter(patchRate, 1)
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.dirty:
		case <-p.again:
		}
		p.again = nil
		if !sleep(ctx, delay) {
			return
		}
		p.write(ctx, limiter)
		if !sleep(ctx, interval-delay) {
			return
		}
	}
}

func sleep(ctx context.Context, duration time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(duration):
		return true
	}
}

// change is a position that an object does not show yet.
type change struct {
	of       *kind
	object   client.Object
	position int
}

// show returns a copy of the object that shows the position.
func (c change) show() client.Object {
	object := c.object.DeepCopyObject().(client.Object)
	*c.of.status(object).info = &oadpv1alpha1.QueueInfo{EstimatedQueuePosition: c.position}
	return object
}

func (p *Positions) write(ctx context.Context, limiter *rate.Limiter) {
	if p.Paused() != nil {
		return
	}
	for _, change := range p.changes(ctx) {
		if limiter.Wait(ctx) != nil {
			return
		}
		object := change.show()
		err := p.Client.Status().Patch(ctx, object, k8s.BoundPatch(change.object))
		switch {
		case err == nil, apierrors.IsNotFound(err):
		case apierrors.IsConflict(err):
			p.Changed() // the cache was out of date; the next round reads the present object
		default:
			if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
				metrics.AccessDenied(metrics.StepQueuePosition)
			}
			p.Log.Warn("write queue position", zap.String("namespace", object.GetNamespace()), zap.String("name", object.GetName()),
				zap.Error(err))
			p.Changed()
		}
	}
}

// changes compares the shown positions with Velero's queues, the front of the queues first.
func (p *Positions) changes(ctx context.Context) []change {
	var all []change
	add := func(changes []change, err error) {
		if err != nil {
			p.Log.Error("compute queue positions", zap.Error(err))
			p.Changed()
			return
		}
		all = append(all, changes...)
	}
	for _, of := range kinds {
		add(p.ofVelero(ctx, of))
	}
	add(p.ofWaiting(ctx))
	slices.SortStableFunc(all, func(a, b change) int { return cmp.Compare(a.position, b.position) })
	return all
}

// ofVelero returns the positions in Velero's queue of a kind. What was finished there, or is not the object's own, is left to its
// workflow.
func (p *Positions) ofVelero(ctx context.Context, of *kind) ([]change, error) {
	queue, err := of.line(ctx, p.Client, p.OADPNamespace)
	if err != nil {
		return nil, err
	}
	var changes []change
	err = caches.Each(ctx, p.Client, of.object, func(object client.Object) {
		shown := of.status(object)
		wasMade := shown.phase == oadpv1alpha1.NonAdminPhaseCreated || shown.phase == oadpv1alpha1.NonAdminPhaseDeleting
		position := queue.positions[shown.made]
		if wasMade && position != 0 && worthShowing(*shown.info, position) &&
			of.origin.Names(queue.made[shown.made], object.GetNamespace(), object.GetName()) {
			changes = append(changes, change{of: of, object: object, position: position})
		}
	})
	return changes, err
}

func worthShowing(shown *oadpv1alpha1.QueueInfo, position int) bool {
	if shown == nil {
		return true
	}
	moved := max(shown.EstimatedQueuePosition-position, position-shown.EstimatedQueuePosition)
	if position <= exactUpTo {
		return moved > 0
	}
	return moved*10 >= shown.EstimatedQueuePosition && moved > 0
}
