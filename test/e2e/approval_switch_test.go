package e2e_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	sdktemporal "go.temporal.io/sdk/temporal"
	"k8s.io/apimachinery/pkg/types"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/workflows/contract"
)

// switching has locations from before approval was required, and from while it was.
type switching struct {
	*tenant
	account            env.Account
	early, unapproved  *nabsl
	pending, rejected  *nabsl
	changed            *nabsl
	veleroWhenApproved types.UID
}

func beforeApprovals(t *testing.T) *switching {
	t.Helper()
	s := &switching{tenant: newTenant(t, "alice"), account: newAccount(t)}
	s.secret("credentials", s.account.CredentialsFile())
	for name, location := range map[string]**nabsl{"early": &s.early, "unapproved": &s.unapproved} {
		*location = s.locate(name, locationSpec(s.account.Bucket, "credentials"))
	}
	s.awaitAvailable(s.early)
	s.awaitAvailable(s.unapproved)
	checkNoRequest(t, s.early)
	return s
}

func (s *switching) switchedOn(t *testing.T) {
	x := &tenant{t: t, namespace: s.namespace, client: s.client}
	for _, location := range []*nabsl{s.early, s.unapproved} {
		x.awaitApproval(location, contract.ApprovalPending)
		x.awaitNothingMade(location)
	}
	nab := x.backUp("waits-for-approval", into("early"))
	x.awaitWaiting(nab, oadpv1alpha1.MessageBSLApprovalPending)
	editByHand(t, s.early, contract.DecisionApprove, "has been in use")
	x.awaitApproval(s.early, contract.ApprovalApproved)
	x.awaitVeleroPhase(nab, velerov1.BackupPhaseCompleted)
	velero, _ := madeFor(t, s.early)
	s.veleroWhenApproved = velero.UID
	awaitEnd(t, nab)
}

func (s *switching) switchedOff(t *testing.T) {
	x := &tenant{t: t, namespace: s.namespace, client: s.client}
	for name, location := range map[string]**nabsl{"pending": &s.pending, "rejected": &s.rejected, "changed": &s.changed} {
		*location = x.locate(name, locationSpec(s.account.Bucket, "credentials"))
		x.awaitApproval(*location, contract.ApprovalPending)
	}
	editByHand(t, s.rejected, contract.DecisionReject, "no")
	x.awaitApproval(s.rejected, contract.ApprovalRejected)
	editByHand(t, s.changed, contract.DecisionApprove, "yes")
	x.awaitApproval(s.changed, contract.ApprovalApproved)
	x.prefixed(s.changed, "later")
	x.awaitApproval(s.changed, contract.ApprovalPending)
	nab := x.backUp("waits-for-the-switch", into("pending"))
	x.awaitWaiting(nab, oadpv1alpha1.MessageBSLApprovalPending)

	setNonAdminPolicy(t, "{}")
	all := []*nabsl{s.unapproved, s.pending, s.rejected, s.changed}
	if s.veleroWhenApproved != "" { // not when the other test is left out
		all = append(all, s.early)
	}
	for _, location := range all {
		seen := x.awaitAvailable(location)
		assert.Equal(t, oadpv1alpha1.MessageBSLApprovalNotRequired,
			locationCondition(seen, oadpv1alpha1.NonAdminConditionClusterAdminApproved).Message)
		awaitAllGone(t, &approvalRequest{ObjectMeta: inOADP(nacuuid(location))})
	}
	x.checkInForce(s.changed, "later")
	if s.veleroWhenApproved != "" {
		velero, _ := madeFor(t, s.early)
		assert.Equal(t, s.veleroWhenApproved, velero.UID, "what was approved stays")
	}
	x.awaitVeleroPhase(nab, velerov1.BackupPhaseCompleted)
	for _, location := range all {
		awaitCompleted(t, approvalID(location)) // closed, the location is still there
		x.remove(location)
	}
}

func (x *tenant) awaitNothingMade(location *nabsl) {
	x.t.Helper()
	awaitAllGone(x.t, &velerov1.BackupStorageLocation{ObjectMeta: inOADP(nacuuid(location))})
	checkNothingMade(x.t, location) // the Secret goes first
}

// decidedBeforeTheChange: the worker is away while the administrator decides and the tenant changes the spec. The next one
// takes no decisions through this Temporal, which asks nobody who he is; the stack's own does.
func decidedBeforeTheChange(t *testing.T) {
	x := newTenant(t, "bob")
	location := x.own(newAccount(t))
	x.awaitApproval(location, contract.ApprovalPending)
	require.NoError(t, stack.Component(env.Worker).Stop())
	t.Cleanup(func() { require.NoError(t, stack.Component(env.Worker).Restart(context.Background())) })
	editByHand(t, location, contract.DecisionApprove, "the old one")
	x.prefixed(location, "newer")
	auto := started(t, stack.StartWorker, "worker-auto", "--approve-through-temporal=auto")
	seen := x.awaitApproval(location, contract.ApprovalPending)
	checkNothingMade(t, location)
	request := readRequest(t, location)
	assert.Equal(t, oadpv1alpha1.ApprovalDecisionPending, request.Spec.PendingApprovalDecision)
	assert.Nil(t, request.Status.LastDecision, "it was never acted on")
	assert.NotContains(t, request.Annotations, oadpv1alpha1.ApprovalReasonAnnotation)

	decision := contract.DecisionRequest{
		Decision: contract.DecisionApprove, Reason: "through Temporal", ResourceVersion: seen.ResourceVersion,
	}
	_, err := decideByUpdate(t.Context(), temporal, location, decision)
	var refused *sdktemporal.ApplicationError
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, contract.ErrorDecisionsOff, refused.Type())
	reason := stack.TemporalAddress() + " answers callers without credentials"
	assert.Contains(t, refused.Message(), reason)
	assert.Contains(t, refused.Message(), "use holdfast approve "+location.Namespace+"/"+location.Name)
	require.NoError(t, temporal.SignalWorkflow(t.Context(), approvalID(location), "", contract.SignalDecide, decision))
	awaitDetailsOf(t, approvalID(location), reason)
	after := x.awaitApproval(location, contract.ApprovalPending)
	assert.Equal(t, seen.ResourceVersion, after.ResourceVersion, "nothing was written")

	output, err := holdfastAs(t.Context(), newApprover(t, "eve"), "approve", location.Namespace+"/"+location.Name,
		"--reason", "the new one", "--resource-version", after.ResourceVersion)
	require.NoError(t, err, output)
	x.awaitApproval(location, contract.ApprovalApproved)
	checkDecision(t, location, contract.DecisionApprove, "eve", "the new one")
	x.checkInForce(location, "newer")

	require.NoError(t, auto.Stop())
	require.NoError(t, stack.Component(env.Worker).Restart(t.Context()))
	decision.Decision, decision.ResourceVersion = contract.DecisionRevoke, readRequest(t, location).ResourceVersion
	_, err = decideByUpdate(t.Context(), temporal, location, decision)
	require.NoError(t, err, "the operator says always")
	x.awaitApproval(location, contract.ApprovalPending)
	x.remove(location)
}
