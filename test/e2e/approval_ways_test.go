package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	temporalclient "go.temporal.io/sdk/client"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/workflowtest/sample"
)

// way is one in which administrators decide. It decides about what was seen.
type way struct {
	by     string
	decide func(t *testing.T, location *nabsl, seen contract.ApprovalView, decision contract.Decision, reason string)
}

// consoleIdentity is what somebody calls himself towards Temporal.
const consoleIdentity = "root@console"

func dialTemporal(t *testing.T, identity string) temporalclient.Client {
	t.Helper()
	client, err := temporalclient.Dial(temporalclient.Options{HostPort: stack.TemporalAddress(), Identity: identity, Logger: env.QuietLogger()})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}

// waysToDecide are all in the long run, else those that the race has not.
func waysToDecide(t *testing.T) map[string]way {
	t.Helper()
	ann, console := newApprover(t, "ann"), dialTemporal(t, consoleIdentity)
	ways := map[string]way{
		"by kubectl": {byKubectl, func(
			t *testing.T, location *nabsl, _ contract.ApprovalView, decision contract.Decision, reason string,
		) {
			require.NoError(t, kubectl(t.Context(), "patch", "-n", env.OADPNamespace, "nabslapprovalrequest", nacuuid(location),
				"--type=merge", "--patch", decisionMerge(decision, reason)))
		}},
		"by the command": {"ann", func(
			t *testing.T, location *nabsl, seen contract.ApprovalView, decision contract.Decision, reason string,
		) {
			output, err := holdfastAs(t.Context(), ann, string(decision), location.Namespace+"/"+location.Name,
				"--reason", reason, "--resource-version", seen.ResourceVersion)
			require.NoError(t, err, output)
			assert.Contains(t, output, "Decided by:  ann")
			checkDecision(t, location, decision, "ann", reason) // it waits for the outcome
		}},
		"by a Temporal Update": {"Temporal identity " + consoleIdentity + ", not verified", func(
			t *testing.T, location *nabsl, seen contract.ApprovalView, decision contract.Decision, reason string,
		) {
			outcome, err := decideByUpdate(t.Context(), console, location, contract.DecisionRequest{
				Decision: decision, Reason: reason, ResourceVersion: seen.ResourceVersion,
			})
			require.NoError(t, err)
			assert.Equal(t, decision, outcome.Decided.Decision)
			assert.Equal(t, reason, outcome.Decided.Reason)
			assert.Equal(t, map[contract.Decision]contract.Approval{
				contract.DecisionApprove: contract.ApprovalApproved, contract.DecisionReject: contract.ApprovalRejected,
				contract.DecisionRevoke: contract.ApprovalPending,
			}[decision], outcome.State)
			checkDecision(t, location, decision, outcome.Decided.By, reason)
		}},
		"by a Temporal signal": {"Temporal identity " + consoleIdentity + ", not verified", func(
			t *testing.T, location *nabsl, seen contract.ApprovalView, decision contract.Decision, reason string,
		) {
			require.NoError(t, console.SignalWorkflow(t.Context(), approvalID(location), "", contract.SignalDecide,
				contract.DecisionRequest{Decision: decision, Reason: reason, ResourceVersion: seen.ResourceVersion}))
		}},
	}
	if !sample.Whole() {
		delete(ways, "by kubectl")
		delete(ways, "by a Temporal Update")
	}
	return ways
}

// Pending, approved, an update pending and rejected, revoked, approved again: the same in each way.
func decideInThisWay(t *testing.T, way way) {
	x := newTenant(t, "alice")
	account := newAccount(t)
	location := x.own(account)
	decide := func(seen contract.ApprovalView, decision contract.Decision, reason string, then contract.Approval) contract.ApprovalView {
		t.Helper()
		way.decide(t, location, seen, decision, reason)
		now := x.awaitApproval(location, then)
		checkDecision(t, location, decision, way.by, reason)
		require.NotNil(t, now.Last)
		assert.Equal(t, way.by, now.Last.By, "the workflow says so too")
		return now
	}
	seen := x.awaitApproval(location, contract.ApprovalPending)
	checkNothingMade(t, location)
	nab := x.backUp("waits", into("own"))
	x.awaitWaiting(nab, oadpv1alpha1.MessageBSLApprovalPending)

	decide(seen, contract.DecisionApprove, "ticket 4711", contract.ApprovalApproved)
	x.awaitAvailable(location)
	x.checkInForce(location, "")
	nab = x.awaitVeleroPhase(nab, velerov1.BackupPhaseCompleted)
	assert.True(t, bucketHas(t, account, x.namespace, nab.Status.VeleroBackup.Name))
	awaitEnd(t, nab)

	x.prefixed(location, "new")
	x.awaitApproval(location, contract.ApprovalPending)
	x.checkInForce(location, "")
	seen = x.awaitApproval(location, contract.ApprovalPending)
	assert.Equal(t, []contract.FieldChange{{Field: "objectStorage.prefix", To: "new"}}, seen.Changes)
	seen = decide(seen, contract.DecisionReject, "not there", contract.ApprovalRejected)
	x.checkInForce(location, "")
	rejected := x.awaitLocation(location, "rejected update", func(now *nabsl) bool {
		update := locationCondition(now, oadpv1alpha1.NonAdminConditionSpecUpdateApproved)
		return update != nil && update.Status == metav1.ConditionFalse && update.Reason == oadpv1alpha1.ReasonBSLSpecUpdateRejected
	})
	assert.Equal(t, oadpv1alpha1.MessageBSLRejected+": not there",
		locationCondition(rejected, oadpv1alpha1.NonAdminConditionClusterAdminApproved).Message)

	seen = decide(seen, contract.DecisionRevoke, "contract ended", contract.ApprovalPending)
	x.awaitNothingMade(location)
	late := x.backUp("late", into("own"))
	x.awaitWaiting(late, oadpv1alpha1.MessageBSLApprovalPending)

	decide(seen, contract.DecisionApprove, "new contract", contract.ApprovalApproved)
	x.awaitAvailable(location)
	x.checkInForce(location, "new")
	x.awaitVeleroPhase(late, velerov1.BackupPhaseCompleted)
	assert.Nil(t, locationCondition(x.awaitAvailable(location), oadpv1alpha1.NonAdminConditionSpecUpdateApproved))
	x.remove(location)
}
