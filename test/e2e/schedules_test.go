package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	temporalclient "go.temporal.io/sdk/client"

	"holdfast.dev/holdfast/workflows/contract"
)

func schedule(ctx context.Context, kind contract.Kind) (*temporalclient.ScheduleDescription, error) {
	id := contract.ScheduleID(stack.ClusterID(), kind)
	return temporal.ScheduleClient().GetHandle(ctx, id).Describe(ctx)
}

func awaitPeriod(t *testing.T, kind contract.Kind, period time.Duration) *temporalclient.ScheduleDescription {
	t.Helper()
	var found *temporalclient.ScheduleDescription
	awaitSuccess(t, func(ctx context.Context) (err error) {
		if found, err = schedule(ctx, kind); err != nil {
			return fmt.Errorf("the Schedule of %s: %w", kind.Workflow, err)
		}
		if intervals := found.Schedule.Spec.Intervals; len(intervals) != 1 || intervals[0].Every != period {
			return fmt.Errorf("the Schedule of %s has %v, not %s", kind.Workflow, intervals, period)
		}
		return nil
	})
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
	awaitSuccess(t, func(ctx context.Context) error {
		described, err := schedule(ctx, contract.KindCollection)
		if err == nil && len(described.Info.RecentActions)+len(described.Info.RunningWorkflows) == 0 {
			err = errors.New("it was not started when the watcher was")
		}
		return err
	})

	setNonAdminPolicy(t, "garbageCollectionPeriod: 0s\nbackupSyncPeriod: 3m\n")
	awaitPeriod(t, contract.KindSynchronization, 3*time.Minute)
	awaitSuccess(t, func(ctx context.Context) error {
		_, err := schedule(ctx, contract.KindCollection)
		var missing *serviceerror.NotFound
		if !errors.As(err, &missing) {
			return fmt.Errorf("a period of zero is never, but its Schedule may be there: %w", err)
		}
		return nil
	})

	setNonAdminPolicy(t, "{}")
	awaitPeriod(t, contract.KindCollection, 24*time.Hour)
	awaitPeriod(t, contract.KindSynchronization, 2*time.Minute)
}
