package watch

import (
	"context"
	"errors"
	"fmt"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.uber.org/zap"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/download"
	"holdfast.dev/holdfast/workflows/contract"
)

// downloads turns the events of NonAdminDownloadRequests, and of what belongs to them, into signals. It also tells when the
// time of one is over. The caches hold no signed URL.
type downloads struct {
	*Watcher
	gatherer *download.Gatherer
	requests chan event.TypedGenericEvent[Request]
	arrivals arrivals
}

// addDownloads adds the watcher of download requests to the manager.
func (w *Watcher) addDownloads() error {
	d := &downloads{
		Watcher: w,
		gatherer: &download.Gatherer{
			Reader: w.manager.GetClient(), ClusterID: w.ClusterID, OADPNamespace: w.OADPNamespace,
		},
		requests: make(chan event.TypedGenericEvent[Request], cap(w.requests)),
	}
	w.downloads = d
	err := builder.TypedControllerManagedBy[Request](w.manager).
		Named("nonadmindownloadrequest").
		Watches(&oadpv1alpha1.NonAdminDownloadRequest{}, d.downloadEvents()).
		Watches(&velerov1.DownloadRequest{}, d.veleroEvents()).
		Watches(&oadpv1alpha1.NonAdminBackup{}, d.subjectEvents(oadpv1alpha1.KindNonAdminBackup)).
		Watches(&oadpv1alpha1.NonAdminRestore{}, d.subjectEvents(oadpv1alpha1.KindNonAdminRestore)).
		Watches(&velerov1.Backup{}, d.veleroSubjectEvents()).
		Watches(&velerov1.Restore{}, d.veleroSubjectEvents()).
		Watches(&velerov1.BackupStorageLocation{}, d.locationEvents()).
		WatchesRawSource(source.TypedChannel(d.requests, passOn(d.add))).
		WithOptions(controller.TypedOptions[Request]{
			MaxConcurrentReconciles: concurrentReconciles,
			CacheSyncTimeout:        cacheSyncTimeout,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[Request](retryFirst, retryCap),
		}).
		Complete(reconcile.TypedFunc[Request](d.look))
	if err != nil {
		return fmt.Errorf("build the watcher of NonAdminDownloadRequests: %w", err)
	}
	return nil
}

// look signals the workflow of a request that is not settled. It comes again after the resync interval, or when the time of
// the request is over.
func (d *downloads) look(ctx context.Context, request Request) (reconcile.Result, error) {
	came := d.arrivals.take(request)
	if err := d.Paused(); err != nil {
		d.Log.Debug("paused", zap.Error(err))
		return reconcile.Result{RequeueAfter: pausedInterval}, nil
	}
	ref := contract.ObjectRef{Namespace: request.Namespace, Name: request.Name, UID: request.UID}
	objects, err := d.gatherer.Gather(ctx, ref)
	if err == nil {
		err = d.signal(ctx, ref, objects, request.Force, func(err error) error {
			return d.measured(contract.KubernetesKindDownload, ref, came, err)
		})
	}
	if err != nil {
		d.arrivals.note(request, came) // tried again: the event still waits for its signal
		return reconcile.Result{}, err
	}
	if request.Force || objects.NADR == nil {
		return reconcile.Result{}, nil
	}
	again := d.ResyncInterval
	if left := download.ExpiresAt(objects.NADR).Sub(objects.At); left > 0 {
		again = min(again, left)
	}
	return reconcile.Result{RequeueAfter: again}, nil
}

// signal tells the workflow of a request that is not settled, or, with force, of any. One that is gone is not settled as long
// as a Velero DownloadRequest is left of it.
func (d *downloads) signal(
	ctx context.Context, ref contract.ObjectRef, o *download.Objects, force bool, measured func(error) error,
) error {
	switch settled := download.Settled(o.View()); {
	case force || !settled:
		changed := contract.Changed{Reason: "changed"}
		return measured(d.Workflows.SignalWithStart(ctx, contract.KindDownload, ref, changed))
	case o.NADR == nil:
		return measured(d.Workflows.SignalRunning(ctx, contract.KindDownload, ref, contract.Changed{Reason: "deleted"}))
	}
	return nil
}

// each calls do for every NonAdminDownloadRequest in the cache that matches. The objects are the cache's own.
func (d *downloads) each(
	ctx context.Context, do func(*oadpv1alpha1.NonAdminDownloadRequest), matching ...client.ListOption,
) {
	list := &oadpv1alpha1.NonAdminDownloadRequestList{}
	if err := d.gatherer.Reader.List(ctx, list, append(matching, client.UnsafeDisableDeepCopy)...); err != nil {
		d.Log.Error("list NonAdminDownloadRequests in the cache", zap.Error(err))
		return
	}
	for i := range list.Items {
		do(&list.Items[i])
	}
}

// lookAtAll has every request looked at soon, those too that are gone and have left a Velero DownloadRequest.
func (d *downloads) lookAtAll(ctx context.Context) {
	d.each(ctx, func(nadr *oadpv1alpha1.NonAdminDownloadRequest) { d.enqueue(ctx, requestForDownload(nadr)) })
	left := &velerov1.DownloadRequestList{}
	err := d.gatherer.Reader.List(ctx, left, client.InNamespace(d.OADPNamespace), client.UnsafeDisableDeepCopy)
	if err != nil {
		d.Log.Error("list Velero DownloadRequests in the cache", zap.Error(err))
	}
	for i := range left.Items {
		if ref, ours := download.OriginOf(&left.Items[i]); ours {
			d.enqueue(ctx, Request{Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID})
		}
	}
}

// enqueue hands a request to the workqueue, which takes it unless the manager stops.
func (d *downloads) enqueue(ctx context.Context, request Request) {
	select {
	case d.requests <- event.TypedGenericEvent[Request]{Object: request}:
	case <-ctx.Done():
	}
}

// sweep judges every request by live lists, while the informers may still be silent after an outage. What a refusal depends
// on comes from the cache: one that is out of date is looked at again when its own event comes.
func (d *downloads) sweep(ctx context.Context) error {
	if err := d.Paused(); err != nil {
		return err
	}
	live := newLiveLists(d.gatherer.Reader)
	live.covers(&velerov1.DownloadRequest{})
	live.covers(&oadpv1alpha1.NonAdminDownloadRequest{})
	err := d.listLive(ctx, &velerov1.DownloadRequestList{}, live.take, client.InNamespace(d.OADPNamespace))
	if err == nil {
		err = d.listLive(ctx, &oadpv1alpha1.NonAdminDownloadRequestList{}, live.take)
	}
	if err != nil {
		return err
	}
	refs := map[contract.ObjectRef]bool{}
	for _, nadr := range listed[*oadpv1alpha1.NonAdminDownloadRequest](live) {
		refs[contract.ObjectRef{Namespace: nadr.Namespace, Name: nadr.Name, UID: string(nadr.UID)}] = true
	}
	for _, request := range listed[*velerov1.DownloadRequest](live) {
		if ref, ours := download.OriginOf(request); ours {
			refs[ref] = true
		}
	}
	gatherer := *d.gatherer
	gatherer.Reader = live
	var failed error
	for ref := range refs {
		o, err := gatherer.Gather(ctx, ref)
		if err != nil {
			failed = errors.Join(failed, err) // what keeps one object from being judged must not hide the others
			continue
		}
		if !download.Settled(o.View()) {
			d.enqueue(ctx, Request{Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID, Force: true})
		}
	}
	return failed
}

// requestForDownload is the request for an object that was read.
func requestForDownload(nadr *oadpv1alpha1.NonAdminDownloadRequest) Request {
	return Request{Namespace: nadr.Namespace, Name: nadr.Name, UID: string(nadr.UID)}
}

func (d *downloads) add(q queue, request Request) {
	d.arrivals.note(request, time.Now())
	q.Add(request)
}

func (d *downloads) addAfter(q queue, request Request, delay time.Duration) {
	d.arrivals.note(request, time.Now().Add(delay))
	q.AddAfter(request, delay)
}
