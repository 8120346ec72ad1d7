package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	toolswatch "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

// observer notes when a backup was asked for, or seen first if a plan makes it, and when its status showed Velero's completion.
type observer struct {
	mutex   sync.Mutex
	begun   map[types.NamespacedName]time.Time
	settled map[types.NamespacedName]time.Time
	waiting map[types.NamespacedName]bool // their status says that they wait for a turn
	deleted int
}

func startObserver(ctx context.Context, c client.WithWatch) (*observer, error) {
	o := &observer{
		begun: map[types.NamespacedName]time.Time{}, settled: map[types.NamespacedName]time.Time{},
		waiting: map[types.NamespacedName]bool{},
	}
	watched, err := watchAll(ctx, c, &oadpv1alpha1.NonAdminBackupList{})
	if err != nil {
		return nil, fmt.Errorf("watch NonAdminBackups: %w", err)
	}
	go func() {
		for event := range watched.ResultChan() {
			nab, ok := event.Object.(*oadpv1alpha1.NonAdminBackup)
			switch {
			case ok && event.Type == watch.Deleted:
				o.noteDeleted()
			case ok:
				o.note(client.ObjectKeyFromObject(nab), completed(nab))
				o.noteWaits(client.ObjectKeyFromObject(nab), k8s.WaitsForTurn(nab.Status.Conditions))
			}
		}
	}()
	return o, nil
}

// watchAll watches what comes from now on, until the context ends. The API server drops a watch whose client is slow, as any is
// on a busy machine: it goes on where it was.
func watchAll(
	ctx context.Context, c client.WithWatch, kind client.ObjectList, options ...client.ListOption,
) (watch.Interface, error) {
	if err := c.List(ctx, kind, append(options, client.Limit(1))...); err != nil {
		return nil, err
	}
	again := func(ctx context.Context, from metav1.ListOptions) (watch.Interface, error) {
		return c.Watch(ctx, kind.DeepCopyObject().(client.ObjectList), append(options, &client.ListOptions{Raw: &from})...)
	}
	return toolswatch.NewRetryWatcherWithContext(ctx, kind.GetResourceVersion(), &cache.ListWatch{WatchFuncWithContext: again})
}

func completed(nab *oadpv1alpha1.NonAdminBackup) bool {
	mirror := nab.Status.VeleroBackup
	return mirror != nil && mirror.Status != nil && mirror.Status.Phase == velerov1.BackupPhaseCompleted
}

// begin notes from when on what becomes of a backup is measured.
func (o *observer) begin(key types.NamespacedName, at time.Time) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.begun[key] = at
}

func (o *observer) note(key types.NamespacedName, completed bool) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if _, known := o.begun[key]; !known {
		o.begun[key] = time.Now()
	}
	if _, known := o.settled[key]; completed && !known {
		o.settled[key] = time.Now()
	}
}

func (o *observer) noteDeleted() {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.deleted++
}

func (o *observer) noteWaits(key types.NamespacedName, waits bool) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if waits {
		o.waiting[key] = true
	} else {
		delete(o.waiting, key)
	}
}

// waits returns how many backups show that they wait for a turn.
func (o *observer) waits() int {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return len(o.waiting)
}

// counts returns how many backups were created, how many have their final status or had it, and how many are deleted.
func (o *observer) counts() (created, settled, deleted int) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return len(o.begun), len(o.settled), o.deleted
}

// span is when a backup was asked for, and when its status showed Velero's completion.
type span struct{ begun, settled time.Time }

// settledBetween returns the backups that settled then, without the first moment.
func (o *observer) settledBetween(from, until time.Time) map[types.NamespacedName]span {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	found := map[types.NamespacedName]span{}
	for key, settled := range o.settled {
		if settled.After(from) && !settled.After(until) {
			found[key] = span{o.begun[key], settled}
		}
	}
	return found
}

// times returns when a backup was asked for, and when its status showed Velero's completion.
func (o *observer) times(key types.NamespacedName) (begun, settled time.Time) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.begun[key], o.settled[key]
}

func (o *observer) unsettled(keys []types.NamespacedName) int {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	count := 0
	for _, key := range keys {
		if _, settled := o.settled[key]; !settled {
			count++
		}
	}
	return count
}

// await returns when all have their final status.
func (o *observer) await(ctx context.Context, keys []types.NamespacedName) error {
	return awaitCount(ctx, len(keys), "backups are settled", func() int { return len(keys) - o.unsettled(keys) })
}

// awaitCount returns when count says that all are as wanted. It says every ten seconds how many are.
func awaitCount(ctx context.Context, all int, wanted string, count func() int) error {
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	tell := time.NewTicker(10 * time.Second)
	defer tell.Stop()
	for count() < all {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d %s: %w", count(), all, wanted, ctx.Err())
		case <-tell.C:
			say("%d of %d %s", count(), all, wanted)
		case <-look.C:
		}
	}
	return nil
}

// originOf names the NonAdminBackup that a Velero Backup was made for.
func originOf(backup *velerov1.Backup) types.NamespacedName {
	return types.NamespacedName{
		Namespace: backup.Annotations[oadpv1alpha1.NabOriginNamespaceAnnotation],
		Name:      backup.Annotations[oadpv1alpha1.NabOriginNameAnnotation],
	}
}

// percentile returns the smallest value that is not exceeded by the given share of all; zero of none.
func percentile(values []time.Duration, percent int) time.Duration {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := (len(sorted)*percent + 99) / 100
	return sorted[max(rank, 1)-1]
}

// millis is a duration in milliseconds.
type millis float64

func inMillis(d time.Duration) millis {
	return millis(d.Round(100*time.Microsecond)) / millis(time.Millisecond)
}
