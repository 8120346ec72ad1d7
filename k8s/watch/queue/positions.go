package queue

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.uber.org/zap"
	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/metrics"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/velero"
	"holdfast.dev/holdfast/k8s/watch/caches"
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
func (p *Positions) Changed() {
	select {
	case p.dirty <- struct{}{}:
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

// change is a position that an object does not show yet. show writes it into a copy of the object.
type change struct {
	object   client.Object
	position int
}

func (c change) show() client.Object {
	info := &oadpv1alpha1.QueueInfo{EstimatedQueuePosition: c.position}
	switch object := c.object.DeepCopyObject().(type) {
	case *oadpv1alpha1.NonAdminBackup:
		object.Status.QueueInfo = info
		return object
	case *oadpv1alpha1.NonAdminRestore:
		object.Status.QueueInfo = info
		return object
	default:
		return c.object
	}
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
	for _, queue := range []func(context.Context) ([]change, error){p.ofBackups, p.ofRestores, p.ofWaiting} {
		changes, err := queue(ctx)
		if err != nil {
			p.Log.Error("compute queue positions", zap.Error(err))
			p.Changed()
			continue
		}
		all = append(all, changes...)
	}
	slices.SortStableFunc(all, func(a, b change) int { return cmp.Compare(a.position, b.position) })
	return all
}

// shown is the position in an object's status, and the Velero object that it names; empty if that was not made.
type shown struct {
	object client.Object
	info   *oadpv1alpha1.QueueInfo
	made   string
}

// line is Velero's queue of one kind.
type line struct {
	origin    owner.Origin
	made      map[string]client.Object
	positions map[string]int
}

// change returns the position that an object is to show.
func (l line) change(s shown) (change, bool) {
	position := l.positions[s.made]
	if position == 0 || !l.origin.Names(l.made[s.made], s.object.GetNamespace(), s.object.GetName()) {
		return change{}, false // finished, or not its own: left to its workflow
	}
	return change{object: s.object, position: position}, worthShowing(s.info, position)
}

func (p *Positions) ofBackups(ctx context.Context) ([]change, error) {
	var made velerov1.BackupList
	if err := p.Client.List(ctx, &made, client.InNamespace(p.OADPNamespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list Velero Backups in the cache: %w", err)
	}
	queue := line{origin: owner.Backup, made: map[string]client.Object{}, positions: velero.QueuePositions(made.Items)}
	for i := range made.Items {
		queue.made[made.Items[i].Name] = &made.Items[i]
	}
	return p.changesOf(ctx, queue, &oadpv1alpha1.NonAdminBackup{}, func(object client.Object) shown {
		nab := object.(*oadpv1alpha1.NonAdminBackup)
		s := shown{object: nab, info: nab.Status.QueueInfo}
		if wasMade(nab.Status.Phase) && nab.Status.VeleroBackup != nil {
			s.made = nab.Status.VeleroBackup.Name
		}
		return s
	})
}

func (p *Positions) ofRestores(ctx context.Context) ([]change, error) {
	var made velerov1.RestoreList
	if err := p.Client.List(ctx, &made, client.InNamespace(p.OADPNamespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list Velero Restores in the cache: %w", err)
	}
	queue := line{origin: owner.Restore, made: map[string]client.Object{}, positions: velero.QueuePositions(made.Items)}
	for i := range made.Items {
		queue.made[made.Items[i].Name] = &made.Items[i]
	}
	return p.changesOf(ctx, queue, &oadpv1alpha1.NonAdminRestore{}, func(object client.Object) shown {
		nar := object.(*oadpv1alpha1.NonAdminRestore)
		s := shown{object: nar, info: nar.Status.QueueInfo}
		if wasMade(nar.Status.Phase) && nar.Status.VeleroRestore != nil {
			s.made = nar.Status.VeleroRestore.Name
		}
		return s
	})
}

func (p *Positions) changesOf(
	ctx context.Context, queue line, kind client.Object, read func(client.Object) shown,
) (changes []change, err error) {
	err = caches.Each(ctx, p.Client, kind, func(object client.Object) {
		if change, due := queue.change(read(object)); due {
			changes = append(changes, change)
		}
	})
	return changes, err
}

// wasMade: the Velero object of an object in this phase was made.
func wasMade(phase oadpv1alpha1.NonAdminPhase) bool {
	return phase == oadpv1alpha1.NonAdminPhaseCreated || phase == oadpv1alpha1.NonAdminPhaseDeleting
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
