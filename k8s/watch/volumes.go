package watch

import (
	"context"
	"sync"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"holdfast.dev/holdfast/k8s/backup"
)

// volumes knows which Velero Backups have, or have had, PodVolumeBackups or DataUploads. Only their metadata
// are watched. Every signal says it, so that no workflow lists them for a backup that has none, as most have.
type volumes struct {
	mutex sync.Mutex
	// backups are those with a volume; true from a volume's event until somebody takes note of it.
	backups map[string]bool
}

func (v *volumes) add(backup string) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if v.backups == nil {
		v.backups = map[string]bool{}
	}
	v.backups[backup] = true
}

func (v *volumes) forget(backup string) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	delete(v.backups, backup)
}

// take reports whether a backup has volumes, and whether an event of one has come since it was asked last.
func (v *volumes) take(backup string) (has, moved bool) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	moved, has = v.backups[backup]
	if has {
		v.backups[backup] = false
	}
	return has, moved
}

// putBack undoes a take that came to nothing.
func (v *volumes) putBack(backup string) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if _, has := v.backups[backup]; has {
		v.backups[backup] = true
	}
}

// uncounted reports whether a backup that has volumes counts none in its status. A workflow can count them as long as the
// Velero Backup exists, also after the end: the watcher may have come to know of them too late, or not have been there.
func uncounted(o *backup.Objects) bool {
	return o.Backup != nil && o.Backup.Status.StartTimestamp != nil &&
		o.NAB.Status.DataMoverDataUploads == nil && o.NAB.Status.FileSystemPodVolumeBackups == nil
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
