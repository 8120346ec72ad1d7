package location

import (
	"slices"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/policy/locationspec"
	"holdfast.dev/holdfast/k8s/shorten"
	"holdfast.dev/holdfast/workflows/contract"
)

type approvalRequest = oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequest

// Approval reduces what was read to the facts about the location's approval.
func (o *Objects) Approval() contract.ApprovalView {
	view := contract.ApprovalView{
		Needed: o.Location != nil && o.Location.DeletionTimestamp.IsZero() && o.Rules.RequireApproval(),
	}
	if o.Location == nil || o.Request == nil {
		return view
	}
	pending, approved := o.specs()
	view.Found = true
	view.Request, view.ResourceVersion = o.Request.Name, o.Request.ResourceVersion
	view.Decision, view.Revoke = string(o.Request.Spec.PendingApprovalDecision), o.Request.Spec.RevokeApprovedSpec
	view.Fresh = o.Request.Generation > o.Request.Status.ObservedGeneration
	view.Signed = slices.ContainsFunc(DecisionAnnotations(), func(annotation string) bool {
		_, found := o.Request.Annotations[annotation]
		return found
	})
	view.HasPending, view.HasApproved = pending != nil, approved != nil
	view.Rejected = pending != nil && o.pendingRejected()
	view.Last = recordOf(o.Request.Status.LastDecision)
	if pending != nil {
		view.Changes = locationspec.Changes(approved, pending)
		if condition := approvalCondition(o.Request); condition != nil {
			view.PendingSince = condition.LastTransitionTime.UTC()
		}
	}
	spec := o.Location.Spec.BackupStorageLocationSpec
	view.Present = pending != nil && locationspec.SameButCredential(spec, pending)
	if view.Needed && o.Usable() {
		isPending := view.Present
		isApproved := approved != nil && locationspec.SameButCredential(spec, approved)
		view.NotRequested, view.Returned = !isPending && !isApproved, isApproved
		view.CredentialMoved = (isPending && !isApproved && CredentialOf(pending) != CredentialOf(spec)) ||
			(isApproved && CredentialOf(approved) != CredentialOf(spec))
	}
	return view
}

func recordOf(last *oadpv1alpha1.ApprovalRecord) *contract.DecisionRecord {
	if last == nil {
		return nil
	}
	return &contract.DecisionRecord{
		Decision: contract.Decision(last.Decision), By: last.DecidedBy, At: last.DecidedAt.UTC(), Reason: last.Reason,
		Generation: last.ObservedGeneration,
	}
}

// Decide writes an action into the status of a request, in memory. ResetDecision does so for the spec.
func (o *Objects) Decide(to *approvalRequest, action contract.ApprovalAction, now time.Time) {
	if to.Status.VeleroBackupStorageLocationApprovalRequest == nil {
		to.Status.VeleroBackupStorageLocationApprovalRequest = &oadpv1alpha1.VeleroBackupStorageLocationApprovalRequest{
			NACUUID: o.Name, Name: o.Location.Name, Namespace: o.Location.Namespace,
		}
	}
	request := to.Status.VeleroBackupStorageLocationApprovalRequest
	spec := o.Location.Spec.BackupStorageLocationSpec
	switch action {
	case contract.ApprovalRevoke:
		request.ApprovedSpec = nil
		if o.Usable() {
			request.PendingSpec = spec.DeepCopy()
		}
		record(to, contract.DecisionRevoke, oadpv1alpha1.RevocationReasonAnnotation, now)
		setApproval(to, metav1.ConditionFalse, oadpv1alpha1.ReasonBSLSpecApprovalPending)
	case contract.ApprovalRequest:
		request.PendingSpec = spec.DeepCopy()
		meta.RemoveStatusCondition(&to.Status.Conditions, string(oadpv1alpha1.NonAdminConditionClusterAdminApproved))
		setApproval(to, metav1.ConditionFalse, oadpv1alpha1.ReasonBSLSpecApprovalPending) // pending since now
	case contract.ApprovalApprove:
		request.ApprovedSpec, request.PendingSpec = request.PendingSpec, nil
		record(to, contract.DecisionApprove, oadpv1alpha1.ApprovalReasonAnnotation, now)
		setApproval(to, metav1.ConditionTrue, oadpv1alpha1.ReasonBSLSpecApproved)
	case contract.ApprovalReject:
		record(to, contract.DecisionReject, oadpv1alpha1.RejectionReasonAnnotation, now)
		setApproval(to, metav1.ConditionFalse, oadpv1alpha1.ReasonBSLSpecRejected)
	case contract.ApprovalReopen:
		setApproval(to, metav1.ConditionFalse, oadpv1alpha1.ReasonBSLSpecApprovalPending)
	case contract.ApprovalDrop:
		request.PendingSpec = nil
		setApproval(to, metav1.ConditionTrue, oadpv1alpha1.ReasonBSLSpecApproved)
	case contract.ApprovalFollow:
		follow(request, spec)
		return // no decision was handled
	}
	to.Status.ObservedGeneration = to.Generation
}

// follow adopts the credential of a spec that is otherwise the same.
func follow(request *oadpv1alpha1.VeleroBackupStorageLocationApprovalRequest, spec *velerov1.BackupStorageLocationSpec) {
	for _, same := range []*velerov1.BackupStorageLocationSpec{request.ApprovedSpec, request.PendingSpec} {
		if same != nil && locationspec.SameButCredential(same, spec) {
			same.Credential = spec.Credential.DeepCopy()
		}
	}
}

// ResetDecision resets a request, in memory, so that it waits for a decision, and removes the annotations of the one before.
func ResetDecision(request *approvalRequest) {
	request.Spec.PendingApprovalDecision = oadpv1alpha1.ApprovalDecisionPending
	request.Spec.RevokeApprovedSpec = false
	TidyDecision(request)
}

// TidyDecision removes the annotations of a decision, in memory.
func TidyDecision(request *approvalRequest) {
	for _, annotation := range DecisionAnnotations() {
		delete(request.Annotations, annotation)
	}
}

// DecisionAnnotations are the annotations of a decision. Each decision sets or removes all of them.
func DecisionAnnotations() []string {
	return []string{
		oadpv1alpha1.DecidedByAnnotation, oadpv1alpha1.DecidedByTemporalAnnotation, oadpv1alpha1.DecisionIDAnnotation,
		oadpv1alpha1.ApprovalReasonAnnotation, oadpv1alpha1.RejectionReasonAnnotation, oadpv1alpha1.RevocationReasonAnnotation,
	}
}

const maxReasonBytes = 512

func record(to *approvalRequest, decision contract.Decision, reason string, now time.Time) {
	to.Status.LastDecision = &oadpv1alpha1.ApprovalRecord{
		Decision: oadpv1alpha1.RecordedDecision(decision), DecidedBy: decidedBy(to), DecidedAt: metav1.NewTime(now),
		Reason: shorten.Text(to.Annotations[reason], maxReasonBytes), ObservedGeneration: to.Generation,
	}
}

// decidedBy says who wrote the spec of a request, as far as that is known.
func decidedBy(request *approvalRequest) string {
	if identity := request.Annotations[oadpv1alpha1.DecidedByTemporalAnnotation]; identity != "" {
		return "Temporal identity " + identity + ", not verified"
	}
	if username := request.Annotations[oadpv1alpha1.DecidedByAnnotation]; username != "" {
		return username
	}
	return "kubectl, see the API server's audit log"
}

var approvalMessages = map[string]string{
	oadpv1alpha1.ReasonBSLSpecApprovalPending: oadpv1alpha1.MessageBSLApprovalPending,
	oadpv1alpha1.ReasonBSLSpecApproved:        oadpv1alpha1.MessageBSLApproved,
	oadpv1alpha1.ReasonBSLSpecRejected:        oadpv1alpha1.MessageBSLRejected,
}

func setApproval(to *approvalRequest, status metav1.ConditionStatus, reason string) {
	meta.SetStatusCondition(&to.Status.Conditions, metav1.Condition{
		Type: string(oadpv1alpha1.NonAdminConditionClusterAdminApproved), Status: status,
		ObservedGeneration: to.Generation, Reason: reason, Message: approvalMessages[reason],
	})
}

func approvalCondition(request *approvalRequest) *metav1.Condition {
	return meta.FindStatusCondition(request.Status.Conditions, string(oadpv1alpha1.NonAdminConditionClusterAdminApproved))
}
