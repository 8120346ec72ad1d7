package finalization_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"

	"holdfast.dev/holdfast/activities/finalization"
	"holdfast.dev/holdfast/workflows/workflowtest"
)

// The status is right within 15 seconds of an outage's end, also if the outage has swallowed an answer.
func TestTheLossOfAWorkerIsNoticedSoon(t *testing.T) {
	a := newAftermath(t, velerov1.RestorePhasePartiallyFailed)
	regular := 0
	_, err := a.finalize(func(s *workflowtest.Scenario, _ *finalization.Activities) {
		s.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context, _ converter.EncodedValues) {
			regular++
			assert.LessOrEqual(t, info.HeartbeatTimeout, 10*time.Second, info.ActivityType.Name)
			assert.Positive(t, info.HeartbeatTimeout, info.ActivityType.Name)
		})
	})
	require.NoError(t, err)
	assert.Equal(t, 4, regular, "three tasks and the publication")
}
