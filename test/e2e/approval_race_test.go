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
	"holdfast.dev/holdfast/workflows/workflowtest/sample"
)

// rounds is how often each location's approval is raced for.
const rounds = 5

// racers is how many locations race at a time.
func racers() int {
	if sample.Whole() {
		return 4
	}
	return 1
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
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		go func() {
			<-start
			request := &approvalRequest{}
			request.Namespace, request.Name = env.OADPNamespace, nacuuid(location)
			patched <- admin.Patch(ctx, request, mergePatch(decisionMerge(byHand, "by hand")))
		}()
		go func() {
			<-start
			_, err := decideByUpdate(ctx, temporal, location, contract.DecisionRequest{
				Decision: byUpdate, Reason: "by Update", ResourceVersion: seen.ResourceVersion,
			})
			updated <- err
		}()
		close(start)
		require.NoError(t, <-patched, "kubectl without a resourceVersion is never refused")
		err := <-updated
		cancel()
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
	awaitSuccess(x.t, func(ctx context.Context) error {
		view, request, now, err := readApproval(ctx, location)
		if err != nil {
			return err
		}
		if state = view.State(); state == contract.ApprovalPending {
			return errors.New("nothing is decided")
		}
		c := &doubts{}
		assert.Equal(c, request.ResourceVersion, view.ResourceVersion)
		checkAgreement(c, state, request, now)
		decided := map[contract.Approval]contract.Decision{
			contract.ApprovalApproved: contract.DecisionApprove, contract.ApprovalRejected: contract.DecisionReject,
		}
		if last := request.Status.LastDecision; assert.NotNil(c, last) {
			assert.EqualValues(c, decided[state], last.Decision)
		}

		velero := &velerov1.BackupStorageLocation{ObjectMeta: inOADP(nacuuid(location))}
		asked := request.Status.VeleroBackupStorageLocationApprovalRequest
		if asked == nil || asked.ApprovedSpec == nil { // nothing was ever approved
			return errors.Join(c.err(), gone(ctx, admin, velero))
		}
		if err := admin.Get(ctx, client.ObjectKeyFromObject(velero), velero); err != nil {
			return err
		}
		assert.Equal(c, x.namespace+"/"+asked.ApprovedSpec.ObjectStorage.Prefix, velero.Spec.ObjectStorage.Prefix)
		return c.err()
	})
	return state
}
