package location

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/location"
	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/policy/locationspec"
	"holdfast.dev/holdfast/workflows/contract"
)

// errLookAgain: the request is no longer what the administrator saw.
var errLookAgain = errors.New("read it again with holdfast list approvals")

// decider writes one decision to an approval request, with the rights and in the name of the person whose client it has.
type decider struct {
	client          client.Client
	oadpNamespace   string
	location        types.NamespacedName
	decision        contract.Decision
	reason          string
	resourceVersion string
	timeout         time.Duration
	interval        time.Duration
	// shown is called before anything is written.
	shown func(about *decided) error
}

// run returns nil if nothing was decided; else the decision is stored, also when there is an error.
func (d *decider) run(ctx context.Context) (*decided, error) {
	request, err := findApproval(ctx, d.client, d.oadpNamespace, d.location)
	if err != nil {
		return nil, err
	}
	if d.resourceVersion != "" && d.resourceVersion != request.ResourceVersion {
		return nil, fmt.Errorf("%s: changed since version %s: %w", d.location, d.resourceVersion, errLookAgain)
	}
	if err := d.refusal(request); err != nil {
		return nil, fmt.Errorf("%s: %w", d.location, err)
	}
	by, err := d.username(ctx)
	if err != nil {
		return nil, err
	}
	about, _ := showApproval(request)
	if d.decision == contract.DecisionRevoke { // is about what is approved, not about what is pending
		about.store(about.ApprovedSpec)
		about.Changes = locationspec.Changes(about.ApprovedSpec, nil)
	}
	result := &decided{Decision: d.decision, By: by, Reason: d.reason, About: about}
	if err := d.shown(result); err != nil {
		return nil, err
	}
	deadline := time.Now().Add(d.timeout)
	if request, err = d.awaitReset(ctx, request, deadline); err != nil {
		return nil, fmt.Errorf("%s: %w", d.location, err)
	}
	if err := d.write(ctx, request, by); err != nil {
		return nil, fmt.Errorf("%s: %w", d.location, err)
	}
	if err := d.awaitOutcome(ctx, request, result, deadline); err != nil {
		return result, fmt.Errorf("%s: %w", d.location, err)
	}
	return result, nil
}

// refusal says why there is nothing to decide.
func (d *decider) refusal(request *approvalRequest) error {
	asked := request.Status.VeleroBackupStorageLocationApprovalRequest
	stored := storedDecision(request)
	switch {
	case stored == d.decision:
		return fmt.Errorf("%s is stored already and the worker will act on it; if it does not, check that holdfast-worker runs",
			stored)
	case stored == contract.DecisionRevoke:
		return errors.New("a revocation is stored, and the worker has yet to act on it: wait, then read it again")
	case d.decision == contract.DecisionRevoke && asked.ApprovedSpec == nil:
		return errors.New("nothing is approved that could be revoked")
	case d.decision == contract.DecisionRevoke:
		return nil
	}
	switch state := approvalState(request); {
	case state == contract.ApprovalApproved && d.decision == contract.DecisionApprove:
		return errors.New("is already approved, nothing is pending")
	case state == contract.ApprovalApproved:
		return errors.New("nothing is pending; what is approved can be revoked with holdfast revoke")
	case state == contract.ApprovalUnknown:
		return errors.New("nothing is pending: the tenant's spec is new or invalid, so no approval is requested yet")
	case state == contract.ApprovalRejected && d.decision == contract.DecisionReject && stored == "":
		return errors.New("is rejected already")
	}
	return nil
}

// username requests from the API server who the caller is: a kubeconfig does not show it.
func (d *decider) username(ctx context.Context) (string, error) {
	review := &authenticationv1.SelfSubjectReview{}
	if err := d.client.Create(ctx, review); err != nil {
		return "", fmt.Errorf("find out your username (SelfSubjectReview): %w", err)
	}
	if review.Status.UserInfo.Username == "" {
		return "", errors.New("find out your username: the API server names none")
	}
	return review.Status.UserInfo.Username, nil
}

// awaitReset waits while the spec still holds the same decision about an earlier specification: writing it again would
// change nothing, so nobody would recognize a new decision. The worker sets it to pending.
func (d *decider) awaitReset(ctx context.Context, request *approvalRequest, deadline time.Time) (*approvalRequest, error) {
	if !d.holds(request) {
		return request, nil
	}
	current := request
	err := d.poll(ctx, request, deadline, func(now *approvalRequest) (bool, error) {
		current = now
		if !equality.Semantic.DeepEqual(now.Status.VeleroBackupStorageLocationApprovalRequest,
			request.Status.VeleroBackupStorageLocationApprovalRequest) {
			return false, fmt.Errorf("changed meanwhile: %w", errLookAgain)
		}
		return !d.holds(now), d.refusalNow(now)
	})
	if errors.Is(err, errTimeout) {
		return nil, fmt.Errorf("nothing was decided: approval request %s/%s still holds the earlier decision, which the worker "+
			"has not set back to pending. Check that holdfast-worker runs", request.Namespace, request.Name)
	}
	return current, err
}

// refusalNow is refusal for a request that has changed while this command was waiting.
func (d *decider) refusalNow(request *approvalRequest) error {
	if stored := storedDecision(request); stored != "" {
		return fmt.Errorf("somebody else has decided meanwhile (%s): %w", stored, errLookAgain)
	}
	return nil
}

// holds reports whether the spec still says what was acted on: a revocation, which goes before all, or the same decision.
func (d *decider) holds(request *approvalRequest) bool {
	return request.Spec.RevokeApprovedSpec || d.specAfter(request) == request.Spec
}

// specAfter is the spec with the decision in it.
func (d *decider) specAfter(request *approvalRequest) oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequestSpec {
	spec := request.Spec
	switch d.decision {
	case contract.DecisionRevoke:
		spec.RevokeApprovedSpec = true
	case contract.DecisionReject:
		spec.PendingApprovalDecision = oadpv1alpha1.ApprovalDecisionReject
	case contract.DecisionApprove:
		spec.PendingApprovalDecision = oadpv1alpha1.ApprovalDecisionApprove
	}
	return spec
}

// write stores the decision, who made it and why, if the request is still the one that was shown. It updates request.
func (d *decider) write(ctx context.Context, request *approvalRequest, by string) error {
	patch := k8s.BoundPatch(request)
	request.Spec = d.specAfter(request)
	reasons := map[contract.Decision]string{
		contract.DecisionApprove: oadpv1alpha1.ApprovalReasonAnnotation,
		contract.DecisionReject:  oadpv1alpha1.RejectionReasonAnnotation,
		contract.DecisionRevoke:  oadpv1alpha1.RevocationReasonAnnotation,
	}
	annotations := maps.Clone(request.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	for _, earlier := range location.DecisionAnnotations() {
		delete(annotations, earlier)
	}
	annotations[reasons[d.decision]] = d.reason
	annotations[oadpv1alpha1.DecidedByAnnotation] = by
	request.SetAnnotations(annotations)
	err := d.client.Patch(ctx, request, patch)
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return fmt.Errorf("changed just now, nothing was decided: %w", errLookAgain)
	case err != nil:
		return fmt.Errorf("write the decision: %w", err)
	}
	return nil
}

// awaitOutcome waits until the worker has acted on the decision that written holds, or has passed it over.
func (d *decider) awaitOutcome(ctx context.Context, written *approvalRequest, result *decided, deadline time.Time) error {
	overwritten := false
	err := d.poll(ctx, written, deadline, func(now *approvalRequest) (bool, error) {
		shown, _ := showApproval(now)
		result.Now, overwritten = &shown, now.Generation > written.Generation
		last := now.Status.LastDecision
		switch {
		case last != nil && last.ObservedGeneration >= written.Generation:
			if last.Decision != oadpv1alpha1.RecordedDecision(d.decision) || last.DecidedBy != result.By {
				return false, fmt.Errorf("overtaken by another decision, %s by %s: %w", last.Decision, last.DecidedBy, errLookAgain)
			}
			result.ActedOn = true
			return true, nil
		case now.Status.ObservedGeneration >= written.Generation:
			return false, fmt.Errorf("the decision was not acted on, because what it was about has changed: %w", errLookAgain)
		}
		return false, nil
	})
	switch {
	case errors.Is(err, errTimeout) && overwritten:
		return fmt.Errorf("something else has changed the approval request since the decision was stored: %w", errLookAgain)
	case errors.Is(err, errTimeout):
		return fmt.Errorf("the decision is stored, but was not acted on yet (%[1]w). Check that holdfast-worker runs and is "+
			"ready. If the tenant's spec has become invalid meanwhile, the decision is on hold until it is corrected (holdfast "+
			"describe approval %[2]s, holdfast describe location %[2]s)", err, d.location)
	}
	return err
}

// errTimeout: what was waited for did not come in time.
var errTimeout = errors.New("timed out")

// poll reads the request until done says so or fails. A request to an API server that is down is repeated.
func (d *decider) poll(
	ctx context.Context, request *approvalRequest, deadline time.Time, done func(now *approvalRequest) (bool, error),
) error {
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	ticker := time.NewTicker(d.interval)
	defer ticker.Stop()
	for {
		now := &approvalRequest{}
		err := d.client.Get(ctx, client.ObjectKeyFromObject(request), now)
		switch {
		case apierrors.IsNotFound(err), err == nil && now.UID != request.UID:
			return errors.New("the approval request is gone: the storage location was deleted, or no approval is needed any more")
		case err == nil:
			if ok, err := done(now); ok || err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), context.Canceled) {
				return context.Cause(ctx)
			}
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				return fmt.Errorf("%w: %w", errTimeout, err)
			}
			return errTimeout
		case <-ticker.C:
		}
	}
}
