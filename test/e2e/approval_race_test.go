package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	sdktemporal "go.temporal.io/sdk/temporal"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/workflows/contract"
)

// rounds is how often each location's approval is raced for.
const rounds = 5

// racers is how many locations race at a time.
func racers() int {
	if long() {
		return 4
	}
	return 2
}

func mergePatch(merge string) client.Patch {
	return client.RawPatch(types.MergePatchType, []byte(merge))
}

// race has kubectl and an Update decide the opposite at the same time. Whichever wins, all agree afterwards.
func race(t *testing.T) {
	x := newTenant(t, "bob")
	account := newAccount(t)
	x.secret("credentials", account.CredentialsFile())
	location := x.locate("own", locationSpec(account.Bucket, "credentials"))
	for round := range rounds {
		x.prefixed(location, fmt.Sprintf("round-%d", round))
		seen := x.awaitApproval(location, contract.ApprovalPending)
		byHand, byUpdate := contract.DecisionApprove, contract.DecisionReject
		if round%2 == 1 {
			byHand, byUpdate = byUpdate, byHand
		}
		start, patched, updated := make(chan struct{}), make(chan error, 1), make(chan error, 1)
		go func() {
			<-start
			request := &approvalRequest{}
			request.Namespace, request.Name = env.OADPNamespace, nacuuid(location)
			patched <- admin.Patch(t.Context(), request, mergePatch(decisionMerge(byHand, "by hand")))
		}()
		go func() {
			<-start
			_, err := decideByUpdate(t.Context(), temporal, location, contract.DecisionRequest{
				Decision: byUpdate, Reason: "by Update", ResourceVersion: seen.ResourceVersion,
			})
			updated <- err
		}()
		close(start)
		require.NoError(t, <-patched, "kubectl without a resourceVersion is never refused")
		err := <-updated
		var refused *sdktemporal.ApplicationError
		if errors.As(err, &refused) {
			assert.Contains(t, []string{contract.ErrorLookAgain, contract.ErrorNothingToDecide}, refused.Type())
		} else {
			require.NoError(t, err)
		}
		outcome := x.awaitDecided(location)
		t.Logf("round %d: kubectl %s, Update %s (%v): %s", round, byHand, byUpdate, err, outcome)
	}
	x.remove(location)
}

// awaitDecided waits until request, location, workflow and Velero agree on a decision.
func (x *tenant) awaitDecided(location *nabsl) contract.Approval {
	x.t.Helper()
	var state contract.Approval
	require.EventuallyWithT(x.t, func(c *assert.CollectT) {
		view, err := approvalOf(context.Background(), location)
		require.NoError(c, err)
		request, now := &approvalRequest{}, &nabsl{}
		key := client.ObjectKey{Namespace: env.OADPNamespace, Name: nacuuid(location)}
		require.NoError(c, admin.Get(context.Background(), key, request))
		require.NoError(c, admin.Get(context.Background(), client.ObjectKeyFromObject(location), now))
		state = view.State()
		require.NotEqual(c, contract.ApprovalPending, state)
		assert.Equal(c, request.ResourceVersion, view.ResourceVersion)
		checkAgreement(c, state, request, now)
		decided := map[contract.Approval]contract.Decision{
			contract.ApprovalApproved: contract.DecisionApprove, contract.ApprovalRejected: contract.DecisionReject,
		}
		assert.EqualValues(c, decided[state], request.Status.LastDecision.Decision)

		velero := &velerov1.BackupStorageLocation{}
		err = admin.Get(context.Background(), key, velero)
		approved := request.Status.VeleroBackupStorageLocationApprovalRequest.ApprovedSpec
		if approved == nil {
			assert.True(c, client.IgnoreNotFound(err) == nil && err != nil, "nothing was ever approved")
			return
		}
		require.NoError(c, err)
		assert.Equal(c, x.namespace+"/"+approved.ObjectStorage.Prefix, velero.Spec.ObjectStorage.Prefix)
	}, patience, locationPoll)
	return state
}
