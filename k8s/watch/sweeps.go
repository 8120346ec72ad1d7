package watch

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/backup"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/workflows/contract"
)

const (
	policyInterval = 2 * time.Second
	listPage       = 500
	// After the API server's return the informers may stay silent for up to a minute; live lists stand in for them.
	recoverySweeps        = 7
	recoverySweepInterval = 10 * time.Second
)

// each calls do for every NonAdminBackup in the cache that matches. The objects are the cache's own.
func (w *Watcher) each(ctx context.Context, do func(*oadpv1alpha1.NonAdminBackup), matching ...client.ListOption) {
	eachCached(ctx, w, &oadpv1alpha1.NonAdminBackupList{}, do, matching...)
}

func (w *Watcher) enqueueBackingOff(ctx context.Context, add func(Request), matching ...client.ListOption) {
	w.each(ctx, func(nab *oadpv1alpha1.NonAdminBackup) {
		if nab.Status.Phase == oadpv1alpha1.NonAdminPhaseBackingOff {
			add(requestFor(nab))
		}
	}, matching...)
}

// polledPolicy is the policy as read last: what the watcher judges thousands of objects by.
type polledPolicy struct {
	source  PolicySource
	current atomic.Pointer[policy.Policy]
}

// Get implements backup.PolicySource. It asks the source itself only until the first answer.
func (p *polledPolicy) Get(ctx context.Context) (policy.Policy, error) {
	if current := p.current.Load(); current != nil {
		return *current, nil
	}
	return p.poll(ctx)
}

func (p *polledPolicy) poll(ctx context.Context) (policy.Policy, error) {
	current, err := p.source.Get(ctx)
	if err == nil {
		p.current.Store(&current)
	}
	return current, err
}

// watchPolicy reads the admin's policy every two seconds and, when it was written, has every backup judged again whose
// rejection the old policy may have caused. The version is compared, not the content: a change and its undoing between
// two reads may have caused rejections too.
func (w *Watcher) watchPolicy(ctx context.Context) error {
	ticker := time.NewTicker(policyInterval)
	defer ticker.Stop()
	var version string
	for {
		_, err := w.policy.poll(ctx)
		if now := w.Policy.Version(); err == nil && now != version {
			version = now
			w.Log.Info("policy in force", zap.String("version", version))
			w.enqueueBackingOff(ctx, func(request Request) { w.enqueue(ctx, request) })
			w.restores.eachBackingOff(ctx, w.restores.lookAgain(ctx))
			w.locations.lookAtAll(ctx) // approval may be required now, or not any more
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// recovery is the sweeps since one return of the API server.
type recovery struct {
	stop context.CancelFunc
	over chan struct{}
}

// Recovered is to be called when the API server has returned. It lists the objects live and signals for each that is
// not settled, now and until the informers have caught up. The sweeps since an earlier return end: an API server that comes
// and goes is never swept twice at a time.
func (w *Watcher) Recovered(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	own := &recovery{stop: stop, over: make(chan struct{})}
	earlier := w.recovery.Swap(own)
	go func() {
		defer close(own.over)
		defer stop()
		if earlier != nil {
			earlier.stop()
			<-earlier.over
		}
		for range recoverySweeps {
			if ctx.Err() != nil {
				return
			}
			err := w.sweep(ctx)
			if ctx.Err() == nil {
				err = errors.Join(err, w.restores.sweep(ctx), w.downloads.sweep(ctx), w.locations.sweep(ctx), w.fdb.sweep(ctx))
			}
			if err != nil && ctx.Err() == nil {
				w.Log.Warn("live sweep after the API server's return", zap.Error(err))
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(recoverySweepInterval):
			}
		}
	}()
}

// TemporalRecovered is to be called when Temporal has returned: it may have lost the workflows of objects that are not
// settled. All are looked at.
func (w *Watcher) TemporalRecovered(ctx context.Context) {
	if !w.watching.Load() {
		return // all are looked at then anyway
	}
	go func() {
		w.each(ctx, func(nab *oadpv1alpha1.NonAdminBackup) { w.enqueue(ctx, requestFor(nab)) })
		w.restores.each(ctx, w.restores.lookAgain(ctx))
		w.downloads.lookAtAll(ctx)
		w.fdb.remindAll(ctx)
		w.locations.lookAtAll(ctx)
	}()
}

func (w *Watcher) sweep(ctx context.Context) error {
	if err := w.Paused(); err != nil {
		return err
	}
	live, err := w.snapshot(ctx)
	if err != nil {
		return err
	}
	gatherer := *w.gatherer
	gatherer.Reader = live
	var failed error
	for _, nab := range live.backups {
		objects, err := gatherBackup(ctx, &gatherer, contract.ObjectRef{Namespace: nab.Namespace, Name: nab.Name, UID: string(nab.UID)})
		if err != nil {
			failed = err // what keeps one object from being judged must not hide the others
			continue
		}
		if request := requestFor(nab).forced(true); !backup.Settled(objects.View(time.Now())) && w.mayBegin(request, unstarted(objects)) {
			w.enqueue(ctx, request)
		}
	}
	return failed
}

// snapshot is a reader over lists made at one time; what it has not listed comes from the cache.
type snapshot struct {
	client.Reader
	backups       map[client.ObjectKey]*oadpv1alpha1.NonAdminBackup
	veleroBackups map[client.ObjectKey]*velerov1.Backup
}

func (w *Watcher) snapshot(ctx context.Context) (*snapshot, error) {
	s := &snapshot{
		Reader:        w.gatherer.Reader,
		backups:       map[client.ObjectKey]*oadpv1alpha1.NonAdminBackup{},
		veleroBackups: map[client.ObjectKey]*velerov1.Backup{},
	}
	err := w.listLive(ctx, &velerov1.BackupList{}, func(list client.ObjectList) {
		items := list.(*velerov1.BackupList).Items
		for i := range items {
			s.veleroBackups[client.ObjectKeyFromObject(&items[i])] = items[i].DeepCopy()
		}
	}, client.InNamespace(w.OADPNamespace))
	if err != nil {
		return nil, err
	}
	return s, w.listLive(ctx, &oadpv1alpha1.NonAdminBackupList{}, func(list client.ObjectList) {
		items := list.(*oadpv1alpha1.NonAdminBackupList).Items
		for i := range items {
			s.backups[client.ObjectKeyFromObject(&items[i])] = items[i].DeepCopy()
		}
	})
}

func (w *Watcher) listLive(
	ctx context.Context, list client.ObjectList, take func(client.ObjectList), options ...client.ListOption,
) error {
	var next string
	for {
		page := append([]client.ListOption{client.Limit(listPage), client.Continue(next)}, options...)
		if err := w.manager.GetAPIReader().List(ctx, list, page...); err != nil {
			return fmt.Errorf("list live: %w", err)
		}
		take(list)
		if next = list.GetContinue(); next == "" {
			return nil
		}
	}
}

// Get implements client.Reader.
func (s *snapshot) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	switch into := object.(type) {
	case *oadpv1alpha1.NonAdminBackup:
		if found, ok := s.backups[key]; ok {
			*into = *found
			return nil
		}
		return apierrors.NewNotFound(oadpv1alpha1.Resource(oadpv1alpha1.ResourceNonAdminBackups), key.Name)
	case *velerov1.Backup:
		if found, ok := s.veleroBackups[key]; ok {
			*into = *found
			return nil
		}
		return apierrors.NewNotFound(velerov1.Resource("backups"), key.Name)
	}
	return s.Reader.Get(ctx, key, object, options...)
}
