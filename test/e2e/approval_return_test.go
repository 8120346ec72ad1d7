package e2e_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/workflows/contract"
)

// revocationWins: one edit revokes and approves, of a first request and of an approved location with an update.
func revocationWins(t *testing.T) {
	x := newTenant(t, "grace")
	location := x.own(newAccount(t))
	both := func(decision oadpv1alpha1.ApprovalDecision) {
		t.Helper()
		request := &approvalRequest{ObjectMeta: metav1.ObjectMeta{Namespace: env.OADPNamespace, Name: nacuuid(location)}}
		require.NoError(t, byHand(t, request, fmt.Sprintf(`{"metadata":{"annotations":{%q:"both"}},`+
			`"spec":{"revokeApprovedSpec":true,"pendingApprovalDecision":%q}}`, oadpv1alpha1.RevocationReasonAnnotation, decision)))
		awaitObject(t, admin, request, patience, "the revocation was acted on", func(now *approvalRequest, there bool) bool {
			return there && !now.Spec.RevokeApprovedSpec
		})
		x.awaitApproval(location, contract.ApprovalPending)
		request = readRequest(t, location)
		assert.Equal(t, oadpv1alpha1.ApprovalDecisionPending, request.Spec.PendingApprovalDecision)
		assert.NotContains(t, request.Annotations, oadpv1alpha1.RevocationReasonAnnotation)
		assert.Nil(t, request.Status.VeleroBackupStorageLocationApprovalRequest.ApprovedSpec)
	}
	x.awaitApproval(location, contract.ApprovalPending)
	both(oadpv1alpha1.ApprovalDecisionApprove)
	checkNothingMade(t, location)
	assert.Nil(t, readRequest(t, location).Status.LastDecision, "there was nothing to revoke")

	for _, decision := range []oadpv1alpha1.ApprovalDecision{oadpv1alpha1.ApprovalDecisionApprove, oadpv1alpha1.ApprovalDecisionReject} {
		editByHand(t, location, contract.DecisionApprove, "fine")
		x.awaitApproval(location, contract.ApprovalApproved)
		x.awaitAvailable(location)
		x.prefixed(location, "with-"+string(decision))
		x.awaitApproval(location, contract.ApprovalPending)
		both(decision)
		x.awaitNothingMade(location)
		checkDecision(t, location, contract.DecisionRevoke, byKubectl, "both")
	}
	x.remove(location)
}

// approvalOfWhatWasLeft: the tenant's spec is invalid while the administrator approves the one before.
func approvalOfWhatWasLeft(t *testing.T) {
	x := newTenant(t, "heidi")
	location := x.own(newAccount(t))
	x.prefixed(location, "good")
	x.awaitApproval(location, contract.ApprovalPending)
	x.prefixed(location, "../elsewhere")
	x.awaitRefused(location, "prefix is invalid")
	editByHand(t, location, contract.DecisionApprove, "the good one")
	version := readRequest(t, location).ResourceVersion
	awaitSuccess(t, func(ctx context.Context) error {
		view, err := approvalOf(ctx, location)
		if err == nil && view.ResourceVersion != version {
			err = fmt.Errorf("the workflow has seen version %s, and the decision is %s", view.ResourceVersion, version)
		}
		return err
	})
	awaitDetailsOf(t, approvalID(location), "Decision *approve* is on hold")
	request := readRequest(t, location)
	assert.Equal(t, version, request.ResourceVersion)
	assert.Nil(t, request.Status.LastDecision)
	checkNothingMade(t, location)

	x.prefixed(location, "good")
	x.awaitApproval(location, contract.ApprovalApproved)
	checkDecision(t, location, contract.DecisionApprove, byKubectl, "the good one")
	x.awaitAvailable(location)
	x.checkInForce(location, "good")
	x.remove(location)
}

// backupOutlastsRevocation: a backup whose plain deletion waits is not given up because its location is away for a while.
func backupOutlastsRevocation(t *testing.T) {
	x := newTenant(t, "dave")
	account := newAccount(t)
	location := x.own(account)
	x.awaitApproval(location, contract.ApprovalPending)
	editByHand(t, location, contract.DecisionApprove, "fine")
	x.awaitAvailable(location)
	nab := x.completedInto("inside", "own")
	x.delete(nab)
	x.awaitCondition(nab, oadpv1alpha1.NonAdminConditionDeleting, oadpv1alpha1.ReasonDeletionPending)

	editByHand(t, location, contract.DecisionRevoke, "for a while")
	x.awaitNothingMade(location)
	x.awaitApproval(location, contract.ApprovalPending)
	looksAgain(t, nab)
	require.NoError(t, admin.Get(t.Context(), client.ObjectKeyFromObject(nab), &oadpv1alpha1.NonAdminBackup{}), "it was given up")
	require.NotNil(t, veleroBackup(t, nab.Status.VeleroBackup.Name))

	editByHand(t, location, contract.DecisionApprove, "again")
	x.awaitAvailable(location)
	x.patch(nab, `{"spec":{"deleteBackup":true}}`)
	x.awaitGone(nab)
	assert.False(t, bucketHas(t, account, x.namespace, nab.Status.VeleroBackup.Name), "the data go with it")
	awaitEnd(t, nab)
	x.remove(location)
}
