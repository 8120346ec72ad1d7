package download

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/velero"
	"holdfast.dev/holdfast/workflows/contract"
)

// Kubernetes Events on a NonAdminDownloadRequest, best effort: written once, after the change that they report. None holds the
// URL. A refusal's reason is the type of its condition.
const (
	eventDownloadReady   = "DownloadReady"
	eventDownloadExpired = "DownloadExpired"
)

// Activities acts on NonAdminDownloadRequests and the Velero DownloadRequests made for them. The signed URL is copied from the
// status of the one to that of the other, and goes nowhere else.
type Activities struct {
	// Client reads from and writes to the API server itself.
	Client client.Client
	// Gatherer reads through Client.
	Gatherer *Gatherer
	// Events writes Events for the tenant; best effort.
	Events events.EventRecorder
	// Paused returns an error while another controller serves these kinds; nothing is done then.
	Paused func() error
}

// Register registers the activities with a worker under their wire names.
func (d *Activities) Register(registry worker.ActivityRegistry) {
	activities.Register(registry, contract.RefreshDownload, activities.Guard(d.Paused, d.Refresh, d.recordRetried))
	activities.Register(registry, contract.RequestDownload, activities.Guard(d.Paused, d.Request, d.recordRetried))
	activities.Register(registry, contract.RemoveDownload, activities.Guard(d.Paused, d.Remove, d.recordRetried))
}

// update reads the object and all that belongs to it, calls act, and returns the view. After a conflict with another writer it
// starts over. Unlike with other kinds, act is also called for a deleted object: its Velero DownloadRequest may be left.
func (d *Activities) update(ctx context.Context, step contract.DownloadStep,
	act func(*Objects) error,
) (contract.DownloadView, error) {
	gather := func() (*Objects, error) {
		objects, err := d.Gatherer.Gather(ctx, step.Ref)
		if err == nil && objects.NADR != nil {
			objects.NADR = objects.NADR.DeepCopy()
		}
		return objects, err
	}
	return activities.Update(oadpv1alpha1.ResourceNonAdminDownloadRequests, gather, act, (*Objects).View)
}

// Refresh reads the present state and, if Velero has answered, copies the answer to the status.
func (d *Activities) Refresh(ctx context.Context, step contract.DownloadStep) (contract.DownloadView, error) {
	return d.update(ctx, step, func(o *Objects) error {
		if !o.Answerable() {
			return nil
		}
		changed, err := activities.PatchStatus(ctx, d.Client, o.NADR, func() { ApplyAnswer(o.NADR, o) })
		if changed {
			o.Verdict = nil // it does not matter any more
			d.record(o.NADR, corev1.EventTypeNormal, eventDownloadReady, "Sign",
				"Velero has signed a URL, see status.velero.status; it expires at %s", ExpiresAt(o.NADR).UTC().Format(time.RFC3339))
		}
		return d.orReread(ctx, step, o, err)
	})
}

// Request checks whether the tenant may have the file, writes the verdict to the status and, if so, requests a URL of Velero.
// It first deletes a request for another file. The condition comes before the request: so a URL is never created without an
// object that waits for it.
func (d *Activities) Request(ctx context.Context, step contract.DownloadStep) (contract.DownloadView, error) {
	return d.update(ctx, step, func(o *Objects) error {
		if o.NADR == nil || o.Verdict == nil {
			return nil // no longer due
		}
		if err := d.explain(ctx, o); err != nil {
			return err
		}
		if o.Useless() {
			if err := d.deleteRequest(ctx, o); err != nil {
				return err
			}
		}
		changed, err := activities.PatchStatus(ctx, d.Client, o.NADR, func() { ApplyVerdict(o.NADR, *o.Verdict) })
		if err != nil {
			return d.orReread(ctx, step, o, err)
		}
		if changed && !o.Verdict.Available {
			d.record(o.NADR, corev1.EventTypeWarning, string(o.Verdict.Condition), "Judge", "%s", o.Verdict.Message)
		}
		if !o.Verdict.Available || o.Request != nil {
			return nil
		}
		request := NewRequest(o.NADR, d.Gatherer.OADPNamespace, o.Verdict.Target)
		err = d.Client.Create(ctx, request)
		if apierrors.IsAlreadyExists(err) {
			// An earlier attempt of ours has made it, or somebody else: the next read shows which.
			return apierrors.NewConflict(velerov1.Resource("downloadrequests"), request.Name, err)
		}
		if err != nil {
			return fmt.Errorf("create DownloadRequest %s/%s: %w", request.Namespace, request.Name, err)
		}
		o.Request = request
		return nil
	})
}

// explain adds Velero's reason to a verdict that is Velero's refusal, before the request that says it is deleted.
func (d *Activities) explain(ctx context.Context, o *Objects) error {
	if o.Request == nil || o.Request.Status.Phase != velero.DownloadRequestFailed ||
		!strings.HasSuffix(o.Verdict.Message, notSigned) {
		return nil
	}
	why, err := velero.WhyNotSigned(ctx, d.Client, o.Request)
	o.Verdict.Message += ": " + why + "; create another NonAdminDownloadRequest to try again"
	return err
}

// Remove deletes the Velero DownloadRequest, with the URL in it, of a deleted or expired object, and an expired object itself.
func (d *Activities) Remove(ctx context.Context, step contract.DownloadStep) (contract.DownloadView, error) {
	return d.update(ctx, step, func(o *Objects) error {
		view := o.View()
		if view.Found && !view.BeingDeleted && !view.Expired {
			return nil // no longer due
		}
		if err := d.deleteRequest(ctx, o); err != nil {
			return err
		}
		if !view.Found || view.BeingDeleted {
			return nil
		}
		uid, version := o.NADR.UID, o.NADR.ResourceVersion
		err := d.Client.Delete(ctx, o.NADR, client.Preconditions{UID: &uid, ResourceVersion: &version})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete NonAdminDownloadRequest %s: %w", step.Ref, err)
		}
		d.record(o.NADR, corev1.EventTypeNormal, eventDownloadExpired, "Expire", "the request has expired and was deleted; "+
			"create another one for a new URL")
		return d.reread(ctx, step, o)
	})
}

func (d *Activities) deleteRequest(ctx context.Context, o *Objects) error {
	if o.Request == nil {
		return nil
	}
	uid := o.Request.UID
	if err := client.IgnoreNotFound(d.Client.Delete(ctx, o.Request, client.Preconditions{UID: &uid})); err != nil {
		return fmt.Errorf("delete DownloadRequest %s/%s: %w", o.Request.Namespace, o.Request.Name, err)
	}
	o.Request = nil
	return nil
}

// orReread reads again if the object was deleted between reading and writing: what was made for it may still exist.
func (d *Activities) orReread(ctx context.Context, step contract.DownloadStep, o *Objects, err error) error {
	if !errors.Is(err, activities.ErrGone) {
		return err
	}
	return d.reread(ctx, step, o)
}

// reread replaces o by the present state, after a write that does not return it.
func (d *Activities) reread(ctx context.Context, step contract.DownloadStep, o *Objects) error {
	present, err := d.Gatherer.Gather(ctx, step.Ref)
	if err != nil {
		return err
	}
	*o = *present
	return nil
}

func (d *Activities) record(nadr *oadpv1alpha1.NonAdminDownloadRequest, kind, reason, action, note string, args ...any) {
	activities.RecordEvent(d.Events, nadr, kind, reason, action, note, args...)
}

// recordRetried: a step failed and has been retried until it succeeded.
func (d *Activities) recordRetried(in contract.DownloadStep, view contract.DownloadView, info activity.Info) {
	if !view.Found {
		return
	}
	nadr := &oadpv1alpha1.NonAdminDownloadRequest{ObjectMeta: metav1.ObjectMeta{
		Namespace: in.Ref.Namespace, Name: in.Ref.Name, UID: types.UID(in.Ref.UID),
	}}
	d.record(nadr, corev1.EventTypeWarning, activities.EventRetried, "Retry", "%s succeeded at attempt %d, %s after the first",
		info.ActivityType.Name, info.Attempt, time.Since(info.ScheduledTime).Round(time.Second))
}
