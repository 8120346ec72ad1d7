package location

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

func TestADecisionIsWrittenInOnePatchAndItsOutcomeAwaited(t *testing.T) {
	pending, approved := oadpv1alpha1.ReasonBSLSpecApprovalPending, oadpv1alpha1.ReasonBSLSpecApproved
	tests := map[string]struct {
		request  *approvalRequest
		decision contract.Decision
		spec     string
		reason   string
		now      contract.Approval
	}{
		"approve a first request": {
			asked(bucket("a"), nil, pending), "approve", `{"pendingApprovalDecision":"approve"}`, "openshift.io/oadp-approval-reason", "approved",
		},
		"approve what was rejected": {
			asked(bucket("a"), nil, oadpv1alpha1.ReasonBSLSpecRejected), "approve", `{"pendingApprovalDecision":"approve"}`,
			"openshift.io/oadp-approval-reason", "approved",
		},
		"reject a change": {
			asked(bucket("b"), bucket("a"), pending), "reject", `{"pendingApprovalDecision":"reject"}`, "openshift.io/oadp-rejection-reason", "rejected",
		},
		"revoke": {
			asked(nil, bucket("a"), approved), "revoke", `{"revokeApprovedSpec":true}`, "holdfast.dev/revocation-reason", "pending",
		},
		"revoke while a change is pending": {
			asked(bucket("b"), bucket("a"), pending), "revoke", `{"revokeApprovedSpec":true}`, "holdfast.dev/revocation-reason", "pending",
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			test.request.Annotations = map[string]string{
				"holdfast.dev/decided-by-temporal-identity": "carl@cli", "holdfast.dev/decision-id": "1", "example.com/kept": "yes",
				"openshift.io/oadp-approval-reason": "old", "openshift.io/oadp-rejection-reason": "old", "holdfast.dev/revocation-reason": "old",
			}
			o := newOffice(t, test.request)
			version := o.request().ResourceVersion
			o.worker = actsOn
			d := o.decider(test.decision)
			var before *decided
			d.shown = func(about *decided) error {
				assert.Empty(t, o.patches, "shown before anything is written")
				before = about
				return nil
			}
			result, err := d.run(t.Context())
			require.NoError(t, err)
			assert.Same(t, before, result)
			assert.Equal(t, "ann", result.By)
			assert.Equal(t, version, result.About.ResourceVersion)
			assert.True(t, result.ActedOn)
			assert.Equal(t, test.now, result.Now.State)

			require.Len(t, o.patches, 1)
			assert.Contains(t, o.patches[0], `"spec":`+test.spec)
			assert.Contains(t, o.patches[0], `"resourceVersion":"`+version+`"`)
			assert.Contains(t, o.patches[0], `"uid":"r-1"`)
			assert.Equal(t, map[string]string{
				test.reason: "ticket 4711", "holdfast.dev/decided-by": "ann", "example.com/kept": "yes",
			}, o.request().Annotations)
		})
	}
}

func TestWhatCannotBeDecidedIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	pending, approved, rejected := oadpv1alpha1.ReasonBSLSpecApprovalPending, oadpv1alpha1.ReasonBSLSpecApproved, oadpv1alpha1.ReasonBSLSpecRejected
	stored := func(request *approvalRequest, decision oadpv1alpha1.ApprovalDecision, revoke bool) *approvalRequest {
		request.Generation = 2
		request.Spec.PendingApprovalDecision, request.Spec.RevokeApprovedSpec = decision, revoke
		return request
	}
	tests := map[string]struct {
		request  *approvalRequest
		decision contract.Decision
		want     string
	}{
		"approve, nothing pending":        {asked(nil, bucket("a"), approved), "approve", "is already approved"},
		"approve, nothing asked":          {asked(nil, nil, pending), "approve", "nothing is pending"},
		"reject, nothing pending":         {asked(nil, bucket("a"), approved), "reject", "nothing is pending; what is approved can be revoked with holdfast revoke"},
		"reject, nothing asked":           {asked(nil, nil, pending), "reject", "nothing is pending"},
		"reject, rejected":                {asked(bucket("a"), nil, rejected), "reject", "is rejected already"},
		"revoke, nothing approved":        {asked(bucket("a"), nil, pending), "revoke", "nothing is approved that could be revoked"},
		"approve, approve stored":         {stored(asked(bucket("a"), nil, pending), "approve", false), "approve", "approve is stored already"},
		"revoke, revoke stored":           {stored(asked(nil, bucket("a"), approved), "pending", true), "revoke", "revoke is stored already"},
		"approve, revoke stored":          {stored(asked(bucket("b"), bucket("a"), pending), "pending", true), "approve", "a revocation is stored"},
		"reject, revoke stored":           {stored(asked(bucket("b"), bucket("a"), pending), "pending", true), "reject", "a revocation is stored"},
		"another location's":              {named(asked(bucket("a"), nil, pending), "shop", "other", 1), "approve", "shop/offsite has no approval request"},
		"changed since it was looked at":  {asked(bucket("a"), nil, pending), "approve", "changed since version 1: read it again with holdfast list approvals"},
		"changed, and nothing is pending": {asked(nil, bucket("a"), approved), "approve", "changed since version 1: read it again"},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			o := newOffice(t, test.request)
			d := o.decider(test.decision)
			d.shown = func(*decided) error { return errors.New("nothing must be shown") }
			if strings.HasPrefix(title, "changed") {
				d.resourceVersion = "1"
			}
			result, err := d.run(t.Context())
			require.ErrorContains(t, err, test.want)
			assert.Contains(t, err.Error(), "shop/offsite")
			assert.Nil(t, result)
			assert.Empty(t, o.patches)
		})
	}
}

// Another mind may be made up while the worker is away.
func TestADecisionThatWasNotActedOnCanBeReplaced(t *testing.T) {
	request := asked(bucket("a"), nil, oadpv1alpha1.ReasonBSLSpecApprovalPending)
	request.Generation, request.Spec.PendingApprovalDecision = 2, "approve"
	o := newOffice(t, request)
	d := o.decider("reject")
	d.resourceVersion = o.request().ResourceVersion
	o.worker = func(request *approvalRequest) bool { return len(o.patches) > 0 && actsOn(request) }
	result, err := d.run(t.Context())
	require.NoError(t, err)
	assert.Equal(t, contract.ApprovalRejected, result.Now.State)
}

// The tenant has changed an approved location, and the worker has not yet set the decision back.
func TestTheSameDecisionAgainWaitsForTheReset(t *testing.T) {
	again := func() *approvalRequest {
		request := asked(bucket("b"), bucket("a"), oadpv1alpha1.ReasonBSLSpecApprovalPending)
		request.Spec.PendingApprovalDecision = "approve"
		return request
	}
	t.Run("and then counts", func(t *testing.T) {
		o := newOffice(t, again())
		looks := 0
		o.worker = func(request *approvalRequest) bool {
			if looks++; looks == 3 {
				assert.Empty(t, o.patches)
				request.Spec.PendingApprovalDecision, request.Generation = "pending", 2
				return true
			}
			return actsOn(request)
		}
		result, err := o.decider("approve").run(t.Context())
		require.NoError(t, err)
		assert.Equal(t, contract.ApprovalApproved, result.Now.State)
		assert.Equal(t, "b", result.Now.Bucket)
		require.Len(t, o.patches, 1)
		assert.Contains(t, o.patches[0], `"spec":{"pendingApprovalDecision":"approve"}`)
	})
	t.Run("and gives up without having decided", func(t *testing.T) {
		o := newOffice(t, again())
		d := o.decider("approve")
		d.timeout = 20 * time.Millisecond
		result, err := d.run(t.Context())
		require.ErrorContains(t, err, "still holds the earlier decision")
		require.ErrorContains(t, err, "nothing was decided")
		assert.Nil(t, result)
		assert.Empty(t, o.patches)
	})
	t.Run("unless the tenant changes it once more", func(t *testing.T) {
		o := newOffice(t, again())
		o.worker = func(request *approvalRequest) bool {
			if request.Generation == 2 {
				return false
			}
			request.Status.VeleroBackupStorageLocationApprovalRequest.PendingSpec = bucket("c")
			request.Spec.PendingApprovalDecision, request.Generation = "pending", 2
			return true
		}
		_, err := o.decider("approve").run(t.Context())
		require.ErrorContains(t, err, "changed meanwhile: read it again with holdfast list approvals")
		assert.Empty(t, o.patches)
	})
	t.Run("unless somebody else decides", func(t *testing.T) {
		o := newOffice(t, again())
		o.worker = func(request *approvalRequest) bool {
			request.Spec.PendingApprovalDecision, request.Generation = "reject", 2
			return true
		}
		_, err := o.decider("approve").run(t.Context())
		require.ErrorContains(t, err, "somebody else has decided meanwhile (reject): read it again")
		assert.Empty(t, o.patches)
	})
	t.Run("also of a revocation", func(t *testing.T) {
		request := asked(bucket("a"), nil, oadpv1alpha1.ReasonBSLSpecApprovalPending)
		request.Spec.RevokeApprovedSpec = true // acted on, and not yet set back
		o := newOffice(t, request)
		d := o.decider("approve")
		d.timeout = 20 * time.Millisecond
		_, err := d.run(t.Context())
		require.ErrorContains(t, err, "still holds the earlier decision", "it would be revoked again, not approved")
		assert.Empty(t, o.patches)
	})
}

func TestARequestThatChangesWhileItIsDecidedIsNotDecided(t *testing.T) {
	o := newOffice(t, asked(bucket("a"), nil, oadpv1alpha1.ReasonBSLSpecApprovalPending))
	o.beforePatch = func() {
		o.change(func(r *approvalRequest) {
			r.Status.VeleroBackupStorageLocationApprovalRequest.PendingSpec = bucket("evil")
		})
	}
	result, err := o.decider("approve").run(t.Context())
	require.ErrorContains(t, err, "shop/offsite: changed just now, nothing was decided: read it again with holdfast list approvals")
	assert.Nil(t, result)
	assert.Equal(t, oadpv1alpha1.ApprovalDecisionPending, o.request().Spec.PendingApprovalDecision)
}
