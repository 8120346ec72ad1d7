package download

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/worker"
	corev1 "k8s.io/api/core/v1"

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
	activities.Cluster
	// Gatherer reads through Client.
	Gatherer *Gatherer
}

// Register registers the activities with a worker under their wire names.
func (d *Activities) Register(registry worker.ActivityRegistry) {
	object := d.object()
	activities.RegisterStep(registry, object, contract.RefreshDownload, d.Refresh)
	activities.RegisterStep(registry, object, contract.RequestDownload, d.Request)
	activities.RegisterStep(registry, object, contract.RemoveDownload, d.Remove)
}

func (d *Activities) object() activities.Object[Objects, contract.DownloadView] {
	return activities.Object[Objects, contract.DownloadView]{
		Cluster: d.Cluster, Kind: &oadpv1alpha1.NonAdminDownloadRequest{}, Resource: oadpv1alpha1.ResourceNonAdminDownloadRequests,
		Gather:   d.Gatherer.Gather,
		Gone:     func(o *Objects) bool { return o.NADR == nil },
		Outlived: true, // by its Velero DownloadRequest, with a URL in it
		View:     (*Objects).View,
		Found:    func(view contract.DownloadView) bool { return view.Found },
	}
}

// Refresh reads the present state and, if Velero has answered, copies the answer to the status.
func (d *Activities) Refresh(ctx context.Context, o *Objects, _ contract.ObjectStep) error {
	if !o.Answerable() {
		return nil
	}
	changed, err := d.PatchStatus(ctx, o.NADR, func() { ApplyAnswer(o.NADR, o) })
	if changed {
		o.Verdict = nil // it does not matter any more
		d.Record(o.NADR, corev1.EventTypeNormal, eventDownloadReady, "Sign",
			"Velero has signed a URL, see status.velero.status; it expires at %s", ExpiresAt(o.NADR).UTC().Format(time.RFC3339))
	}
	return err
}

// Request checks whether the tenant may have the file, writes the verdict to the status and, if so, requests a URL of Velero.
// It first deletes a request for another file. The condition comes before the request: so a URL is never created without an
// object that waits for it.
func (d *Activities) Request(ctx context.Context, o *Objects, _ contract.ObjectStep) error {
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
	changed, err := d.PatchStatus(ctx, o.NADR, func() { ApplyVerdict(o.NADR, *o.Verdict) })
	if err != nil {
		return err
	}
	if changed && !o.Verdict.Available {
		d.Record(o.NADR, corev1.EventTypeWarning, string(o.Verdict.Condition), "Judge", "%s", o.Verdict.Message)
	}
	if !o.Verdict.Available || o.Request != nil {
		return nil
	}
	request := NewRequest(o.NADR, d.Gatherer.OADPNamespace, o.Verdict.Target)
	if err := activities.AsConflict(d.Client.Create(ctx, request)); err != nil {
		return fmt.Errorf("create DownloadRequest %s/%s: %w", request.Namespace, request.Name, err)
	}
	o.Request = request
	return nil
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
func (d *Activities) Remove(ctx context.Context, o *Objects, step contract.ObjectStep) error {
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
	if err := d.DeleteUnchanged(ctx, o.NADR); err != nil {
		return err
	}
	d.Record(o.NADR, corev1.EventTypeNormal, eventDownloadExpired, "Expire", "the request has expired and was deleted; "+
		"create another one for a new URL")
	return d.object().Reread(ctx, step.Ref, o)
}

func (d *Activities) deleteRequest(ctx context.Context, o *Objects) error {
	if o.Request == nil {
		return nil
	}
	err := d.Delete(ctx, o.Request)
	if err == nil {
		o.Request = nil
	}
	return err
}
