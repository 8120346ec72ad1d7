package watch

import (
	"context"
	"sync"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// volumes knows which Velero Backups have, or have had, PodVolumeBackups or DataUploads. Only their metadata
// are watched. Every signal says it, so that no workflow lists them for a backup that has none, as most have.
type volumes struct {
	mutex   sync.Mutex
	backups map[string]struct{}
}

func (v *volumes) add(backup string) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if v.backups == nil {
		v.backups = map[string]struct{}{}
	}
	v.backups[backup] = struct{}{}
}

func (v *volumes) forget(backup string) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	delete(v.backups, backup)
}

func (v *volumes) has(backup string) bool {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	_, has := v.backups[backup]
	return has
}

// volumeEvents: progress of a volume is progress of its backup.
func (w *Watcher) volumeEvents() events {
	enqueue := func(ctx context.Context, object client.Object, q queue) {
		name := object.GetLabels()[velerov1.BackupNameLabel]
		if name == "" {
			return
		}
		w.volumes.add(name)
		made := &velerov1.Backup{}
		if w.gatherer.Reader.Get(ctx, types.NamespacedName{Namespace: w.OADPNamespace, Name: name}, made) != nil {
			return // not there, or not yet: its own event will come
		}
		if nab := w.origin(ctx, made); nab != nil {
			w.addAfter(q, requestFor(nab), w.ProgressInterval)
		}
	}
	return events{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { enqueue(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion() {
				enqueue(ctx, e.ObjectNew, q)
			}
		},
	}
}
