package watch

import (
	"cmp"
	"context"
	"slices"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.uber.org/zap"
	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/backup"
	"holdfast.dev/holdfast/k8s/metrics"
	"holdfast.dev/holdfast/k8s/restore"
)

const (
	// A round of queue positions comes this long after the change that made it due, and no two rounds closer than this.
	positionsDelay    = time.Second
	positionsInterval = 10 * time.Second
	positionPatchRate = 10 // a second
	// Up to this position every change is shown; beyond it, only moves by a tenth.
	positionShown = 20
)

// positionsChanged has the queue positions computed again soon.
func (w *Watcher) positionsChanged() {
	select {
	case w.dirty <- struct{}{}:
	default:
	}
}

// keepQueuePositions keeps status.queueInfo of everything unfinished. It is a projection of Velero's queue that no
// single workflow can see, so the leading watcher writes it, and it alone, without waking a workflow.
func (w *Watcher) keepQueuePositions(ctx context.Context) {
	limiter := rate.NewLimiter(positionPatchRate, 1)
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.dirty:
		}
		if !sleep(ctx, positionsDelay) {
			return
		}
		w.writePositions(ctx, limiter)
		if !sleep(ctx, positionsInterval-positionsDelay) {
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

// positionChange is a position that an object does not show yet. show writes it into a copy of the object.
type positionChange struct {
	object   client.Object
	position int
}

func (c positionChange) show() client.Object {
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

func (w *Watcher) writePositions(ctx context.Context, limiter *rate.Limiter) {
	if w.Paused() != nil {
		return
	}
	for _, change := range w.positionChanges(ctx) {
		if limiter.Wait(ctx) != nil {
			return
		}
		object := change.show()
		err := w.manager.GetClient().Status().Patch(ctx, object, k8s.BoundPatch(change.object))
		switch {
		case err == nil, apierrors.IsNotFound(err):
		case apierrors.IsConflict(err):
			w.positionsChanged() // the cache was behind; the next round sees the object as it is
		default:
			if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
				metrics.AccessDenied(metrics.StepQueuePosition)
			}
			w.Log.Warn("write queue position", zap.String("namespace", object.GetNamespace()), zap.String("name", object.GetName()),
				zap.Error(err))
			w.positionsChanged()
		}
	}
}

// positionChanges compares the shown positions with Velero's queues, the front of the queues first.
func (w *Watcher) positionChanges(ctx context.Context) []positionChange {
	changes := append(w.backupPositionChanges(ctx), w.restorePositionChanges(ctx)...)
	slices.SortStableFunc(changes, func(a, b positionChange) int { return cmp.Compare(a.position, b.position) })
	return changes
}

func (w *Watcher) backupPositionChanges(ctx context.Context) []positionChange {
	var list velerov1.BackupList
	if err := w.gatherer.Reader.List(ctx, &list, client.InNamespace(w.OADPNamespace), client.UnsafeDisableDeepCopy); err != nil {
		w.Log.Error("list Velero Backups in the cache", zap.Error(err))
		return nil
	}
	positions := backup.QueuePositions(list.Items)
	origins := make(map[string]*velerov1.Backup, len(list.Items))
	for i := range list.Items {
		origins[list.Items[i].Name] = &list.Items[i]
	}
	var changes []positionChange
	w.each(ctx, func(nab *oadpv1alpha1.NonAdminBackup) {
		if !wasMade(nab.Status.Phase) || nab.Status.VeleroBackup == nil {
			return
		}
		name := nab.Status.VeleroBackup.Name
		position := positions[name]
		if position == 0 || !backup.OriginIs(origins[name], nab.Namespace, nab.Name) {
			return // finished, passed or not its own: the workflow's part
		}
		if worthShowing(nab.Status.QueueInfo, position) {
			changes = append(changes, positionChange{object: nab, position: position})
		}
	})
	return changes
}

func (w *Watcher) restorePositionChanges(ctx context.Context) []positionChange {
	var list velerov1.RestoreList
	if err := w.gatherer.Reader.List(ctx, &list, client.InNamespace(w.OADPNamespace), client.UnsafeDisableDeepCopy); err != nil {
		w.Log.Error("list Velero Restores in the cache", zap.Error(err))
		return nil
	}
	positions := restore.QueuePositions(list.Items)
	origins := make(map[string]*velerov1.Restore, len(list.Items))
	for i := range list.Items {
		origins[list.Items[i].Name] = &list.Items[i]
	}
	var changes []positionChange
	w.restores.each(ctx, func(nar *oadpv1alpha1.NonAdminRestore) {
		if !wasMade(nar.Status.Phase) || nar.Status.VeleroRestore == nil {
			return
		}
		name := nar.Status.VeleroRestore.Name
		position := positions[name]
		if position == 0 || !restore.OriginIs(origins[name], nar.Namespace, nar.Name) {
			return // finished, passed or not its own: the workflow's part
		}
		if worthShowing(nar.Status.QueueInfo, position) {
			changes = append(changes, positionChange{object: nar, position: position})
		}
	})
	return changes
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
	if position <= positionShown {
		return moved > 0
	}
	return moved*10 >= shown.EstimatedQueuePosition && moved > 0
}
