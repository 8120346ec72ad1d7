package e2e_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	temporalclient "go.temporal.io/sdk/client"

	"holdfast.dev/holdfast/workflows/contract"
)

func schedule(kind contract.Kind) (*temporalclient.ScheduleDescription, error) {
	id := contract.ScheduleID(stack.ClusterID(), kind)
	return temporal.ScheduleClient().GetHandle(context.Background(), id).Describe(context.Background())
}

func awaitPeriod(t *testing.T, kind contract.Kind, period time.Duration) *temporalclient.ScheduleDescription {
	t.Helper()
	var found *temporalclient.ScheduleDescription
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		described, err := schedule(kind)
		if assert.NoError(c, err) && assert.Len(c, described.Schedule.Spec.Intervals, 1) {
			assert.Equal(c, period, described.Schedule.Spec.Intervals[0].Every)
		}
		found = described
	}, patience, poll)
	return found
}

// Not parallel: the policy is everybody's.
func TestPeriodicWorkFollowsThePolicy(t *testing.T) {
	collection := awaitPeriod(t, contract.KindCollection, 24*time.Hour)
	awaitPeriod(t, contract.KindSynchronization, 2*time.Minute)
	assert.Equal(t, enumspb.SCHEDULE_OVERLAP_POLICY_SKIP, collection.Schedule.Policy.Overlap)
	assert.Equal(t, 10*time.Minute, collection.Schedule.Policy.CatchupWindow)
	cluster, found := collection.TypedSearchAttributes.GetKeyword(contract.AttributeCluster)
	assert.True(t, found)
	assert.Equal(t, stack.ClusterID(), cluster)
	require.Eventually(t, func() bool {
		described, err := schedule(contract.KindCollection)
		return err == nil && len(described.Info.RecentActions)+len(described.Info.RunningWorkflows) > 0
	}, patience, poll, "started when the watcher was")

	setNonAdminPolicy(t, "garbageCollectionPeriod: 0s\nbackupSyncPeriod: 3m\n")
	awaitPeriod(t, contract.KindSynchronization, 3*time.Minute)
	require.Eventually(t, func() bool {
		_, err := schedule(contract.KindCollection)
		var missing *serviceerror.NotFound
		return errors.As(err, &missing)
	}, patience, poll, "a period of zero is never")

	setNonAdminPolicy(t, "{}")
	awaitPeriod(t, contract.KindCollection, 24*time.Hour)
	awaitPeriod(t, contract.KindSynchronization, 2*time.Minute)
}
