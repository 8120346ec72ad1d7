package e2e_test

import (
	"fmt"
	"path"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.temporal.io/api/serviceerror"
	sdktemporal "go.temporal.io/sdk/temporal"
	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/workflows/contract"
)

// Everything that needs approval to be required, which is so for all tenants at once: not parallel. What is in it is.
func TestApprovals(t *testing.T) {
	before := beforeApprovals(t)
	setNonAdminPolicy(t, approvalRequired)
	t.Run("switching approval on takes away what nobody approved", before.switchedOn)
	t.Run("while approval is required", func(t *testing.T) {
		for name, way := range waysToDecide(t) {
			t.Run("it is decided "+name, func(t *testing.T) {
				t.Parallel()
				decideInThisWay(t, way)
			})
		}
		for name, test := range map[string]func(*testing.T){
			"what was approved works while a change waits":       approvedKeepsWorking,
			"a first request is rejected":                        firstIsRejected,
			"another credential needs no approval":               credentialNeedsNone,
			"a decision is about what was seen":                  decisionIsAboutWhatWasSeen,
			"nothing can be decided while the location is going": decidedDuringDeletion,
			"a location that is deleted is not asked about":      deletedWhileDecided,
			"an administrator sees what is asked for":            shownToAdministrators,
			"revoking wins over approving":                       revocationWins,
			"an approval waits for a spec that was left":         approvalOfWhatWasLeft,
			"a backup outlasts a revocation":                     backupOutlastsRevocation,
			"what is shown as pending can be decided":            decidedAtFirstSight,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t)
			})
		}
		for i := range racers() {
			t.Run(fmt.Sprintf("a kubectl edit and an Update race, %d", i), func(t *testing.T) {
				t.Parallel()
				race(t)
			})
		}
	})
	t.Run("a decision by kubectl does not count for a newer spec", decidedBeforeTheChange)
	t.Run("a half-finished deletion goes on after a kill", killedWhileDeletingLocation)
	t.Run("nothing outlives a location that goes without its finalizer", goesWithoutFinalizer)
	t.Run("switching approval off makes what was asked for", before.switchedOff)
	requireNoSecretShown(t)
}

func approvedKeepsWorking(t *testing.T) {
	x := newTenant(t, "bob")
	account := newAccount(t)
	secret := x.secret("credentials", account.CredentialsFile())
	location := x.locate("own", locationSpec(account.Bucket, "credentials"))
	x.awaitApproval(location, contract.ApprovalPending)
	editByHand(t, location, contract.DecisionApprove, "first")
	x.awaitAvailable(location)

	x.prefixed(location, "two")
	x.awaitApproval(location, contract.ApprovalPending)
	old := x.completedInto("into-the-old", "own")
	assert.True(t, bucketHas(t, account, x.namespace, old.Status.VeleroBackup.Name), "in the approved folder")
	x.rewrite(secret, withWrongKey(account).CredentialsFile())
	x.awaitLocation(location, "the mirrored status goes on", func(now *nabsl) bool {
		return now.Status.Phase == oadpv1alpha1.NonAdminPhaseBackingOff &&
			now.Status.VeleroBackupStorageLocation.Status.Phase == velerov1.BackupStorageLocationPhaseUnavailable
	})
	account = rotated(t, account)
	x.rewrite(secret, account.CredentialsFile())
	awaitCopy(t, location, account)

	editByHand(t, location, contract.DecisionApprove, "second")
	x.awaitApproval(location, contract.ApprovalApproved)
	x.awaitAvailable(location)
	x.checkInForce(location, "two")
	updated := x.completedInto("into-the-new", "own")
	assert.True(t, bucketHas(t, account, path.Join(x.namespace, "two"), updated.Status.VeleroBackup.Name))

	x.prefixed(location, "three")
	x.awaitApproval(location, contract.ApprovalPending)
	x.prefixed(location, "two")
	x.awaitApproval(location, contract.ApprovalApproved) // back at what was approved: nothing to decide
	checkDecision(t, location, contract.DecisionApprove, byKubectl, "second")
	x.remove(location)
}

func firstIsRejected(t *testing.T) {
	x := newTenant(t, "carol")
	account := newAccount(t)
	location := x.own(account)
	x.awaitApproval(location, contract.ApprovalPending)
	editByHand(t, location, contract.DecisionReject, "not our provider")
	x.awaitApproval(location, contract.ApprovalRejected)
	checkNothingMade(t, location)
	nab := x.backUp("waits", into("own"))
	x.awaitWaiting(nab, oadpv1alpha1.MessageBSLRejected+": not our provider")
	x.awaitLocationEvent(location, oadpv1alpha1.ReasonBSLSpecRejected, "not our provider")
	seen := x.awaitApproval(location, contract.ApprovalRejected)
	assert.Nil(t, locationCondition(x.awaitLocation(location, "read", func(*nabsl) bool { return true }),
		oadpv1alpha1.NonAdminConditionSpecUpdateApproved), "there is nothing that was approved before")
	require.True(t, seen.Rejected)

	editByHand(t, location, contract.DecisionApprove, "on second thought")
	x.awaitApproval(location, contract.ApprovalApproved)
	x.awaitVeleroPhase(nab, velerov1.BackupPhaseCompleted)
	x.remove(location)
}

func credentialNeedsNone(t *testing.T) {
	x := newTenant(t, "dave")
	account := newAccount(t)
	location := x.own(account)
	x.awaitApproval(location, contract.ApprovalPending)
	x.secret("second", account.CredentialsFile())
	x.change(location, `{"spec":{"backupStorageLocationSpec":{"credential":{"name":"second"}}}}`)
	x.awaitApproval(location, contract.ApprovalPending) // the pending spec has followed
	editByHand(t, location, contract.DecisionApprove, "once")
	x.awaitApproval(location, contract.ApprovalApproved)

	account = rotated(t, account)
	x.secret("third", account.CredentialsFile())
	x.change(location, `{"spec":{"backupStorageLocationSpec":{"credential":{"name":"third"}}}}`)
	awaitCopy(t, location, account)
	x.awaitApproval(location, contract.ApprovalApproved)
	checkDecision(t, location, contract.DecisionApprove, byKubectl, "once")
	_, secret := madeFor(t, location)
	assert.Equal(t, "third/cloud", secret.Annotations[oadpv1alpha1.CopiedFromAnnotation])
	x.completedInto("with-the-third", "own")
	x.remove(location)
}

func decisionIsAboutWhatWasSeen(t *testing.T) {
	x := newTenant(t, "erin")
	location := x.own(newAccount(t))
	seen := x.awaitApproval(location, contract.ApprovalPending)
	x.prefixed(location, "moved")
	now := x.awaitApproval(location, contract.ApprovalPending)
	require.NotEqual(t, seen.ResourceVersion, now.ResourceVersion)
	console, ben := dialTemporal(t, consoleIdentity), newApprover(t, "ben")

	refusals := map[string]struct {
		request contract.DecisionRequest
		want    string
	}{
		"of an earlier version": {
			contract.DecisionRequest{Decision: contract.DecisionApprove, Reason: "late", ResourceVersion: seen.ResourceVersion},
			contract.ErrorLookAgain,
		},
		"of nothing": {
			contract.DecisionRequest{Decision: contract.DecisionRevoke, Reason: "hasty", ResourceVersion: now.ResourceVersion},
			contract.ErrorNothingToDecide,
		},
		"unknown": {
			contract.DecisionRequest{Decision: "perhaps", Reason: "unsure", ResourceVersion: now.ResourceVersion},
			contract.ErrorDecisionInvalid,
		},
		"without a reason": {
			contract.DecisionRequest{Decision: contract.DecisionApprove, ResourceVersion: now.ResourceVersion},
			contract.ErrorDecisionInvalid,
		},
	}
	for name, test := range refusals {
		_, err := decideByUpdate(t.Context(), console, location, test.request)
		var refused *sdktemporal.ApplicationError
		require.ErrorAs(t, err, &refused, name)
		assert.Equal(t, test.want, refused.Type(), name)
	}
	output, err := holdfastAs(t.Context(), ben, "approve", location.Namespace+"/"+location.Name,
		"--reason", "late", "--resource-version", seen.ResourceVersion)
	require.Error(t, err)
	assert.Contains(t, output, "read it again")
	require.NoError(t, console.SignalWorkflow(t.Context(), approvalID(location), "", contract.SignalDecide, refusals["of an earlier version"].request))
	awaitDetailsOf(t, approvalID(location), "the last decision by signal (approve) was refused")

	after := x.awaitApproval(location, contract.ApprovalPending)
	assert.Equal(t, now.ResourceVersion, after.ResourceVersion, "nothing was written")
	checkNothingMade(t, location)

	// A refusal shows the new version, also if nothing was due with it.
	labelled := readRequest(t, location)
	require.NoError(t, byHand(t, labelled, `{"metadata":{"labels":{"example.com/team":"storage"}}}`))
	request := contract.DecisionRequest{Decision: contract.DecisionApprove, Reason: "seen", ResourceVersion: labelled.ResourceVersion}
	_, err = decideByUpdate(t.Context(), console, location, request)
	var refused *sdktemporal.ApplicationError
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, contract.ErrorLookAgain, refused.Type())
	view, err := approvalOf(t.Context(), location)
	require.NoError(t, err)
	request.ResourceVersion = view.ResourceVersion
	_, err = decideByUpdate(t.Context(), console, location, request)
	require.NoError(t, err)
	x.awaitApproval(location, contract.ApprovalApproved)
	x.remove(location)
}

// decidedDuringDeletion: somebody else's finalizer keeps the object, so that there is time to decide.
func decidedDuringDeletion(t *testing.T) {
	x := newTenant(t, "frank")
	location := x.own(newAccount(t))
	seen := x.awaitApproval(location, contract.ApprovalPending)
	x.change(location, `{"metadata":{"finalizers":["example.com/hold",`+fmt.Sprintf("%q", oadpv1alpha1.NabslFinalizer)+`]}}`)
	require.NoError(t, x.client.Delete(t.Context(), location.DeepCopy()))
	x.awaitLocation(location, "released by Holdfast", func(now *nabsl) bool {
		return len(now.Finalizers) == 1 && now.Status.Phase == oadpv1alpha1.NonAdminPhaseDeleting
	})
	checkNoRequest(t, location)
	awaitCompleted(t, approvalID(location))

	cleo, console := newApprover(t, "cleo"), dialTemporal(t, consoleIdentity)
	output, err := holdfastAs(t.Context(), cleo, "approve", location.Namespace+"/"+location.Name, "--reason", "late")
	require.Error(t, err)
	assert.Contains(t, output, "has no approval request")
	request := contract.DecisionRequest{Decision: contract.DecisionApprove, Reason: "late", ResourceVersion: seen.ResourceVersion}
	_, err = decideByUpdate(t.Context(), console, location, request)
	var notFound *serviceerror.NotFound
	require.ErrorAs(t, err, &notFound, "the workflow is closed")
	err = console.SignalWorkflow(t.Context(), approvalID(location), "", contract.SignalDecide, request)
	require.ErrorAs(t, err, &notFound)

	x.change(location, `{"metadata":{"finalizers":null}}`)
	x.awaitRemoved(location)
}

// deletedWhileDecided: approvals and deletions at the same time; the deletion wins.
func deletedWhileDecided(t *testing.T) {
	x := newTenant(t, "grace")
	account := newAccount(t)
	x.secret("credentials", account.CredentialsFile())
	var locations []*nabsl
	for i := range 5 {
		location := x.locate(fmt.Sprintf("short-lived-%d", i), locationSpec(account.Bucket, "credentials"))
		x.awaitApproval(location, contract.ApprovalPending)
		locations = append(locations, location)
	}
	group, ctx := errgroup.WithContext(t.Context())
	for _, location := range locations {
		request := &approvalRequest{}
		request.Namespace, request.Name = env.OADPNamespace, nacuuid(location)
		group.Go(func() error {
			return client.IgnoreNotFound(admin.Patch(ctx, request, mergePatch(decisionMerge(contract.DecisionApprove, "just now"))))
		})
		group.Go(func() error { return x.client.Delete(ctx, location.DeepCopy()) })
	}
	require.NoError(t, group.Wait())
	for _, location := range locations {
		x.awaitRemoved(location)
	}
}

func shownToAdministrators(t *testing.T) {
	x := newTenant(t, "heidi")
	account := newAccount(t)
	location := x.own(account)
	x.awaitApproval(location, contract.ApprovalPending)
	editByHand(t, location, contract.DecisionApprove, "fine")
	x.awaitApproval(location, contract.ApprovalApproved)
	x.prefixed(location, "elsewhere")
	seen := x.awaitApproval(location, contract.ApprovalPending)

	dora := newApprover(t, "dora")
	output, err := holdfastAs(t.Context(), dora, "list", "approvals", "-n", x.namespace)
	require.NoError(t, err, output)
	assert.Regexp(t, x.namespace+` +own +pending +`+account.Bucket+` +\S+ +`+seen.ResourceVersion, output)
	assert.Contains(t, output, "+ objectStorage.prefix: elsewhere")
	assert.NotContains(t, output, "objectStorage.bucket", "what does not change")

	awaitDetailsOf(t, approvalID(location), // on a busy machine it says for a while that something is tried again
		"**Pending since ", "```diff\n+ objectStorage.prefix: elsewhere\n```", seen.ResourceVersion, seen.Request, "fine")
	x.remove(location)
}
