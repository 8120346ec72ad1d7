package location

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/metrics"
	"holdfast.dev/holdfast/workflows/approval"
	"holdfast.dev/holdfast/workflows/contract"
)

// RefreshApproval reads the present state.
func (l *Activities) RefreshApproval(context.Context, *Objects, contract.ObjectStep) error {
	return nil
}

// AdvanceApproval writes to the approval request what approval.NextApproval says for the present state. Each write carries the
// resourceVersion of what was read, so a newer decision is never overwritten.
func (l *Activities) AdvanceApproval(ctx context.Context, o *Objects, _ contract.ObjectStep) error {
	action := approval.NextApproval(o.Approval())
	if action == contract.ApprovalWait || action == contract.ApprovalClose {
		return nil
	}
	request := o.Request.DeepCopy()
	switch action {
	case contract.ApprovalReset:
		_, err := l.PatchObject(ctx, request, func() { ResetDecision(request) })
		return err
	case contract.ApprovalTidy:
		_, err := l.PatchObject(ctx, request, func() { TidyDecision(request) })
		return err
	}
	changed, err := l.PatchStatus(ctx, request, func() { o.Decide(request, action, time.Now()) })
	if changed {
		metrics.ApprovalAdvanced(string(action))
	}
	return err
}

// Decide writes an administrator's decision to the approval request, as kubectl would. It permanently refuses a decision about
// another spec than the administrator has seen. Repeating it changes nothing: the request carries the ID of the decision.
func (l *Activities) Decide(ctx context.Context, step contract.DecisionStep) (contract.ApprovalView, error) {
	if err := l.DecisionsOff(); err != nil {
		return contract.ApprovalView{}, refusal(contract.ErrorDecisionsOff,
			"decisions through Temporal do not count: %v; use holdfast %s %s --reason TEXT, or kubectl patch of the approval request",
			err, step.Request.Decision, step.Ref)
	}
	identity, err := l.Identity(ctx, step)
	if err != nil {
		return contract.ApprovalView{}, fmt.Errorf("find out whose decision this is: %w", err)
	}
	execution := activity.GetInfo(ctx).WorkflowExecution
	id := execution.RunID + "/update/" + step.UpdateID
	if step.SignalNumber > 0 {
		id = fmt.Sprintf("%s/signal/%d", execution.RunID, step.SignalNumber)
	}
	view, err := l.approvals().Update(ctx, step.Ref, func(o *Objects) error {
		if o.Request != nil && o.Request.Annotations[oadpv1alpha1.DecisionIDAnnotation] == id {
			return nil // written by an earlier attempt
		}
		if err := decidable(o.Approval(), step.Request); err != nil {
			return err
		}
		request := o.Request.DeepCopy()
		_, err := l.PatchObject(ctx, request, func() { write(request, step.Request, identity, id) })
		return err
	})
	if err == nil {
		err = stillThere(view) // it may have been deleted before the read, or before the write
	}
	return view, err
}

func stillThere(view contract.ApprovalView) error {
	if view.Needed && view.Found {
		return nil
	}
	return refusal(contract.ErrorNothingToDecide, "the location is gone or being deleted, or needs no approval")
}

func decidable(view contract.ApprovalView, request contract.DecisionRequest) error {
	if err := stillThere(view); err != nil {
		return err
	}
	switch {
	case view.ResourceVersion != request.ResourceVersion:
		return lookAgain(view.Request)
	case view.Revoke || (view.HasPending && !view.Rejected && string(request.Decision) == view.Decision):
		// Written by another a moment ago and not handled yet, or about the spec before: ours would be lost in it.
		return lookAgain(view.Request)
	case request.Decision == contract.DecisionRevoke && !view.HasApproved:
		return refusal(contract.ErrorNothingToDecide, "nothing is approved that could be revoked")
	case request.Decision != contract.DecisionRevoke && !view.HasPending:
		return refusal(contract.ErrorNothingToDecide, "nothing is pending")
	case request.Decision != contract.DecisionRevoke && !view.Present:
		return refusal(contract.ErrorNothingToDecide, "the tenant has changed the spec, and the new one is invalid: nothing can "+
			"be decided until it is corrected")
	case request.Decision == contract.DecisionReject && view.Rejected:
		return refusal(contract.ErrorNothingToDecide, "the pending spec has already been rejected")
	}
	return nil
}

func lookAgain(request string) error {
	return refusal(contract.ErrorLookAgain, "approval request %s has changed since you read it: read it again, and decide "+
		"with the new resourceVersion", request)
}

func refusal(kind, format string, args ...any) error {
	return temporal.NewNonRetryableApplicationError(fmt.Sprintf(format, args...), kind, nil)
}

// write sets the spec and the annotations that say who decided and why.
func write(
	request *oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequest, decided contract.DecisionRequest, identity, id string,
) {
	ResetDecision(request)
	reason := map[contract.Decision]string{
		contract.DecisionApprove: oadpv1alpha1.ApprovalReasonAnnotation,
		contract.DecisionReject:  oadpv1alpha1.RejectionReasonAnnotation,
		contract.DecisionRevoke:  oadpv1alpha1.RevocationReasonAnnotation,
	}[decided.Decision]
	if decided.Decision == contract.DecisionRevoke {
		request.Spec.RevokeApprovedSpec = true
	} else {
		request.Spec.PendingApprovalDecision = oadpv1alpha1.ApprovalDecision(decided.Decision)
	}
	if request.Annotations == nil {
		request.Annotations = map[string]string{}
	}
	request.Annotations[reason] = decided.Reason
	request.Annotations[oadpv1alpha1.DecidedByTemporalAnnotation] = identity
	request.Annotations[oadpv1alpha1.DecisionIDAnnotation] = id
}
