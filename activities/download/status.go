package download

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

// The functions of this file change the status of a NonAdminDownloadRequest in memory and nothing else. There is one condition
// at a time: each replaces the one before.

// ApplyVerdict records the verdict on the target. A URL of another target, or of a file that is no longer allowed, is removed.
func ApplyVerdict(nadr *oadpv1alpha1.NonAdminDownloadRequest, verdict Verdict) {
	nadr.Status.Phase = oadpv1alpha1.NonAdminPhaseNew
	if !verdict.Available {
		nadr.Status.Phase = oadpv1alpha1.NonAdminPhaseBackingOff
	}
	nadr.Status.VeleroDownloadRequest = oadpv1alpha1.VeleroDownloadRequest{}
	setOnly(nadr, verdict.condition())
}

// ApplyAnswer copies the answer of the Velero DownloadRequest, the signed URL included.
func ApplyAnswer(nadr *oadpv1alpha1.NonAdminDownloadRequest, o *Objects) {
	nadr.Status.Phase = oadpv1alpha1.NonAdminPhaseCreated
	nadr.Status.VeleroDownloadRequest.Status = o.Request.Status.DeepCopy()
	setOnly(nadr, metav1.Condition{
		Type: string(oadpv1alpha1.NonAdminConditionProcessed), Status: metav1.ConditionTrue,
		Reason: oadpv1alpha1.ReasonDownloadSuccess,
	})
}

// Answerable reports whether Velero has answered, and the answer may be handed out.
func (o *Objects) Answerable() bool { return o.NADR != nil && o.current() && o.signed() }

// Useless reports whether there is a Velero DownloadRequest for another file than may be handed out today.
func (o *Objects) Useless() bool { return o.Request != nil && !o.current() }

func setOnly(nadr *oadpv1alpha1.NonAdminDownloadRequest, condition metav1.Condition) {
	condition.ObservedGeneration = nadr.Generation
	var only []metav1.Condition
	if same := conditionOf(nadr, oadpv1alpha1.NonAdminCondition(condition.Type)); same != nil {
		only = append(only, *same)
	}
	meta.SetStatusCondition(&only, condition)
	nadr.Status.Conditions = only
}
