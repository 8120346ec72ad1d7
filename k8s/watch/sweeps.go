package watch

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.uber.org/zap"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/backup"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/workflows/contract"
)

const (
	policyInterval = 2 * time.Second
	// After the API server's return the informers may stay silent for up to a minute; live lists stand in for them.
	recoverySweeps        = 7
	recoverySweepInterval = 10 * time.Second
)

// each calls do for every NonAdminBackup in the cache that matches. The objects are the cache's own.
func (w *Watcher) each(ctx context.Context, do func(*oadpv1alpha1.NonAdminBackup), matching ...client.ListOption) {
	eachCached(ctx, w, &oadpv1alpha1.NonAdminBackupList{}, do, matching...)
}

// eachBackingOff calls do for every backup whose verdict may have changed.
func (w *Watcher) eachBackingOff(ctx context.Context, do func(*oadpv1alpha1.NonAdminBackup), matching ...client.ListOption) {
	w.each(ctx, func(nab *oadpv1alpha1.NonAdminBackup) {
		if nab.Status.Phase == oadpv1alpha1.NonAdminPhaseBackingOff {
			do(nab)
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
			w.eachBackingOff(ctx, func(nab *oadpv1alpha1.NonAdminBackup) { w.enqueue(ctx, afterPolicy(nab)) })
			w.restores.eachBackingOff(ctx, func(nar *oadpv1alpha1.NonAdminRestore) { w.restores.enqueue(ctx, afterPolicy(nar)) })
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

// sweep looks at what the cache does not know yet, while the informers may still be silent after an outage: at backups that
// differ, and at those whose Velero Backup does. What is the same was signalled before.
func (w *Watcher) sweep(ctx context.Context) error {
	if err := w.Paused(); err != nil {
		return err
	}
	live := newLive(w.gatherer.Reader)
	err := w.compare(ctx, live, &velerov1.Backup{}, &velerov1.BackupList{}, w.OADPNamespace)
	if err == nil {
		err = w.compare(ctx, live, &oadpv1alpha1.NonAdminBackup{}, &oadpv1alpha1.NonAdminBackupList{}, "")
	}
	if err != nil {
		return err
	}
	concerned := concernedBy(live, changed[*oadpv1alpha1.NonAdminBackup](live), k8s.BackupOrigin, moved[*velerov1.Backup](live))
	gatherer := *w.gatherer
	gatherer.Reader = live
	var failed error
	for _, ref := range concerned.refs(ctx, func() client.Object { return &oadpv1alpha1.NonAdminBackup{} }) {
		objects, err := gatherBackup(ctx, &gatherer, ref)
		if err != nil {
			failed = err // what keeps one object from being judged must not hide the others
			continue
		}
		request := Request{Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID, Force: true}
		if !backup.Settled(objects.View(time.Now())) && w.mayBegin(request, unstarted(objects)) {
			w.enqueue(ctx, request)
		}
	}
	return failed
}

// concern is which tenants' objects are to be looked at.
type concern struct {
	live *live
	keys map[client.ObjectKey]bool
}

// concernedBy are the objects themselves and those that others name as their origin.
func concernedBy[T, M client.Object](live *live, objects []T, origin k8s.Origin, made []M) concern {
	c := concern{live: live, keys: map[client.ObjectKey]bool{}}
	for _, object := range objects {
		c.keys[client.ObjectKeyFromObject(object)] = true
	}
	for _, object := range made {
		if key, named := origin.Of(object); named {
			c.keys[key] = true
		}
	}
	return c
}

// refs are those that are there.
func (c concern) refs(ctx context.Context, kind func() client.Object) []contract.ObjectRef {
	var refs []contract.ObjectRef
	for key := range c.keys {
		object := kind()
		if c.live.Get(ctx, key, object) == nil {
			refs = append(refs, contract.ObjectRef{Namespace: key.Namespace, Name: key.Name, UID: string(object.GetUID())})
		}
	}
	return refs
}
