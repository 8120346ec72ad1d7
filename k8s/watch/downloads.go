package watch

import (
	"context"
	"errors"
	"fmt"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.uber.org/zap"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/download"
	"holdfast.dev/holdfast/workflows/contract"
)

// downloads turns the events of NonAdminDownloadRequests, and of what belongs to them, into signals. It also tells when the
// time of one is over. The caches hold no signed URL.
type downloads struct {
	*Watcher
	*intake  // its own, not the Watcher's
	gatherer *download.Gatherer
}

// addDownloads adds the watcher of download requests to the manager.
func (w *Watcher) addDownloads() error {
	d := &downloads{
		Watcher: w,
		gatherer: &download.Gatherer{
			Reader: w.manager.GetClient(), ClusterID: w.ClusterID, OADPNamespace: w.OADPNamespace,
		},
		intake: newIntake(),
	}
	w.downloads = d
	controller := builder.TypedControllerManagedBy[Request](w.manager).
		Named("nonadmindownloadrequest").
		Watches(&oadpv1alpha1.NonAdminDownloadRequest{}, d.downloadEvents()).
		Watches(&velerov1.DownloadRequest{}, d.veleroEvents()).
		Watches(&oadpv1alpha1.NonAdminBackup{}, d.subjectEvents(oadpv1alpha1.KindNonAdminBackup)).
		Watches(&oadpv1alpha1.NonAdminRestore{}, d.subjectEvents(oadpv1alpha1.KindNonAdminRestore)).
		Watches(&velerov1.Backup{}, d.veleroSubjectEvents()).
		Watches(&velerov1.Restore{}, d.veleroSubjectEvents()).
		Watches(&velerov1.BackupStorageLocation{}, d.locationEvents())
	if err := d.feed(controller, d.look); err != nil {
		return fmt.Errorf("build the watcher of NonAdminDownloadRequests: %w", err)
	}
	return nil
}

// look signals the workflow of a request that is not settled. It comes again after the resync interval, or when the time of
// the request is over.
func (d *downloads) look(ctx context.Context, request Request) (reconcile.Result, error) {
	return d.attend(d.Watcher, request, func(ref contract.ObjectRef, came time.Time) (reconcile.Result, error) {
		objects, err := d.gatherer.Gather(ctx, ref)
		if err == nil {
			err = d.signal(ctx, ref, objects, request.Force, func(err error) error {
				return d.measured(contract.KubernetesKindDownload, ref, came, err)
			})
		}
		if err != nil || request.Force || objects.NADR == nil {
			return reconcile.Result{}, err
		}
		again := d.ResyncInterval
		if left := download.ExpiresAt(objects.NADR).Sub(objects.At); left > 0 {
			again = min(again, left)
		}
		return reconcile.Result{RequeueAfter: again}, nil
	})
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
func (d *downloads) each(ctx context.Context, do func(*oadpv1alpha1.NonAdminDownloadRequest), matching ...client.ListOption) {
	eachCached(ctx, d.Watcher, &oadpv1alpha1.NonAdminDownloadRequestList{}, do, matching...)
}

// lookAtAll has every request looked at soon, those too that are gone and have left a Velero DownloadRequest.
func (d *downloads) lookAtAll(ctx context.Context) {
	d.each(ctx, func(nadr *oadpv1alpha1.NonAdminDownloadRequest) { d.enqueue(ctx, requestFor(nadr)) })
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

// sweep looks at the requests that the cache does not know yet as they are, see Watcher.sweep. What a refusal depends
// on comes from the cache: one that is out of date is looked at again when its own event comes.
func (d *downloads) sweep(ctx context.Context) error {
	if err := d.Paused(); err != nil {
		return err
	}
	live := newLive(d.gatherer.Reader)
	err := d.compare(ctx, live, &velerov1.DownloadRequest{}, &velerov1.DownloadRequestList{}, d.OADPNamespace)
	if err == nil {
		err = d.compare(ctx, live, &oadpv1alpha1.NonAdminDownloadRequest{}, &oadpv1alpha1.NonAdminDownloadRequestList{}, "")
	}
	if err != nil {
		return err
	}
	refs := map[contract.ObjectRef]bool{}
	for _, nadr := range moved[*oadpv1alpha1.NonAdminDownloadRequest](live) {
		refs[contract.ObjectRef{Namespace: nadr.Namespace, Name: nadr.Name, UID: string(nadr.UID)}] = true
	}
	for _, request := range moved[*velerov1.DownloadRequest](live) {
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
