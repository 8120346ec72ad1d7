package download

import (
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/kstatus"
	"holdfast.dev/holdfast/workflows/contract"
)

// UnansweredLife is how long a request without a URL is kept: its backup may still be running, or Velero be down. A request
// with a URL lives as long as the URL.
const UnansweredLife = time.Hour

// View reduces the objects to the facts that decide the next step.
func (o *Objects) View() contract.DownloadView {
	view := contract.DownloadView{Velero: o.veleroView()}
	if o.NADR == nil {
		return view
	}
	view.Found = true
	view.Phase = string(o.NADR.Status.Phase)
	view.BeingDeleted = !o.NADR.DeletionTimestamp.IsZero()
	view.Expired = o.expired()
	view.Answered = answered(o.NADR)
	view.Validated = o.validated()
	view.Refused = view.Validated && o.Verdict != nil && !o.Verdict.Available
	return view
}

// ExpiresAt is when a NonAdminDownloadRequest expires.
func ExpiresAt(nadr *oadpv1alpha1.NonAdminDownloadRequest) time.Time {
	if signed := nadr.Status.VeleroDownloadRequest.Status; answered(nadr) && signed.Expiration != nil {
		return signed.Expiration.Time
	}
	return nadr.CreationTimestamp.Add(UnansweredLife)
}

func (o *Objects) expired() bool { return !o.At.Before(ExpiresAt(o.NADR)) }

// answered: the status holds the URL of the file for the present generation.
func answered(nadr *oadpv1alpha1.NonAdminDownloadRequest) bool {
	signed := nadr.Status.VeleroDownloadRequest.Status
	processed := conditionOf(nadr, oadpv1alpha1.NonAdminConditionProcessed)
	return signed != nil && signed.DownloadURL != "" && processed != nil &&
		processed.Status == metav1.ConditionTrue && processed.ObservedGeneration == nadr.Generation
}

// validated: the one condition is about the present generation, and agrees with the present verdict.
func (o *Objects) validated() bool {
	if o.Verdict == nil {
		return answered(o.NADR)
	}
	conditions := kstatus.Others(o.NADR.Status.Conditions)
	if len(conditions) != 1 || conditions[0].ObservedGeneration != o.NADR.Generation {
		return false
	}
	want := o.Verdict.condition()
	return conditions[0].Type == want.Type && conditions[0].Status == want.Status &&
		conditions[0].Reason == want.Reason && conditions[0].Message == want.Message
}

func (o *Objects) veleroView() contract.VeleroDownloadView {
	view := contract.VeleroDownloadView{Name: o.requestName}
	if o.Request == nil {
		return view
	}
	view.Exists = true
	view.Phase = string(o.Request.Status.Phase)
	view.Current = o.current()
	view.Signed = o.signed()
	return view
}

// current: the Velero DownloadRequest is for the file that may be handed out today, and can be used.
func (o *Objects) current() bool {
	if o.Request == nil || o.Verdict == nil || !o.Verdict.Available || !o.Request.DeletionTimestamp.IsZero() {
		return false
	}
	expires := o.Request.Status.Expiration
	return o.Request.Spec.Target == o.Verdict.Target && (!o.signed() || expires == nil || o.At.Before(expires.Time))
}

func (o *Objects) signed() bool {
	return o.Request.Status.Phase == velerov1.DownloadRequestPhaseProcessed && o.Request.Status.DownloadURL != ""
}

func conditionOf(nadr *oadpv1alpha1.NonAdminDownloadRequest, kind oadpv1alpha1.NonAdminCondition) *metav1.Condition {
	for i := range nadr.Status.Conditions {
		if nadr.Status.Conditions[i].Type == string(kind) {
			return &nadr.Status.Conditions[i]
		}
	}
	return nil
}
