package connect_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"holdfast.dev/holdfast/workflows/connect"
	"holdfast.dev/holdfast/workflows/contract"
)

// schedules is a Temporal with at most one Schedule, which notes what is called.
type schedules struct {
	client.ScheduleClient
	client.ScheduleHandle
	is    *client.Schedule
	errs  map[string]error
	calls []string
}

func (s *schedules) called(method string) error {
	s.calls = append(s.calls, method)
	return s.errs[method]
}

// temporalOf is a client of such a Temporal.
type temporalOf struct {
	client.Client
	schedules *schedules
}

// ScheduleClient implements client.Client.
func (t temporalOf) ScheduleClient() client.ScheduleClient { return t.schedules }

// GetHandle implements client.ScheduleClient.
func (s *schedules) GetHandle(context.Context, string) client.ScheduleHandle { return s }

// Create implements client.ScheduleClient.
func (s *schedules) Create(_ context.Context, options client.ScheduleOptions) (client.ScheduleHandle, error) {
	s.is = &client.Schedule{
		Action: options.Action, Spec: &options.Spec,
		Policy: &client.SchedulePolicies{Overlap: options.Overlap, CatchupWindow: options.CatchupWindow},
	}
	return s, s.called("create " + options.ID)
}

// Describe implements client.ScheduleHandle.
func (s *schedules) Describe(context.Context) (*client.ScheduleDescription, error) {
	if err := s.called("describe"); err != nil {
		return nil, err
	}
	if s.is == nil {
		return nil, serviceerror.NewNotFound("no such Schedule")
	}
	return &client.ScheduleDescription{Schedule: *s.is}, nil
}

// Update implements client.ScheduleHandle.
func (s *schedules) Update(_ context.Context, options client.ScheduleUpdateOptions) error {
	update, err := options.DoUpdate(client.ScheduleUpdateInput{Description: client.ScheduleDescription{Schedule: *s.is}})
	if err == nil {
		s.is = update.Schedule
	}
	return errors.Join(err, s.called("update"))
}

// Delete implements client.ScheduleHandle.
func (s *schedules) Delete(context.Context) error { return s.called("delete") }

func nightly(every time.Duration) connect.Schedule {
	spec := client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: every}}}
	work := connect.Periodic(contract.KindCollection, "west")
	return connect.Starting(work, work.Options.ID, spec, time.Minute, func(is *client.ScheduleSpec) bool {
		return len(is.Intervals) == 1 && is.Intervals[0].Every == every
	})
}

func TestAScheduleIsMadeOnceAndChangedIfItDiffers(t *testing.T) {
	s := &schedules{}
	ensure := func(wanted connect.Schedule) []string {
		s.calls = nil
		require.NoError(t, wanted.Ensure(t.Context(), temporalOf{schedules: s}))
		return s.calls
	}
	absent := nightly(time.Hour)
	absent.Absent = true
	assert.Equal(t, []string{"describe"}, ensure(absent))
	assert.Equal(t, []string{"describe", "create west/garbage-collection"}, ensure(nightly(time.Hour)))
	assert.Equal(t, []string{"describe"}, ensure(nightly(time.Hour)))
	assert.Equal(t, []string{"describe", "update"}, ensure(nightly(time.Minute)), "another period")
	s.is.State = &client.ScheduleState{Paused: true, Note: "maintenance"}
	s.is.Policy.Overlap = enumspb.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL
	assert.Equal(t, []string{"describe", "update"}, ensure(nightly(time.Minute)), "somebody has changed it by hand")
	assert.Equal(t, enumspb.SCHEDULE_OVERLAP_POLICY_SKIP, s.is.Policy.Overlap)
	assert.Equal(t, "maintenance", s.is.State.Note, "operators decide whether it is paused")
	s.is.Action.(*client.ScheduleWorkflowAction).TaskQueue = "other"
	assert.Equal(t, []string{"describe", "update"}, ensure(nightly(time.Minute)), "another release has made it")
	assert.Equal(t, "holdfast-west", s.is.Action.(*client.ScheduleWorkflowAction).TaskQueue)
}

func TestErrorsOfSchedulesNameThem(t *testing.T) {
	const id = "west/garbage-collection"
	failing := func(method string, err error) temporalOf {
		return temporalOf{schedules: &schedules{errs: map[string]error{method: err}}}
	}
	require.EqualError(t, nightly(time.Hour).Ensure(t.Context(), failing("describe", errAway)), "describe Schedule "+id+": connection refused")
	require.EqualError(t, nightly(time.Hour).Ensure(t.Context(), failing("create "+id, errAway)), "create Schedule "+id+": connection refused")
	differs := failing("update", errAway)
	differs.schedules.is = &client.Schedule{}
	require.EqualError(t, nightly(time.Hour).Ensure(t.Context(), differs), "update Schedule "+id+": connection refused")
	require.EqualError(t, connect.DeleteSchedule(t.Context(), failing("delete", errAway), id), "delete Schedule "+id+": connection refused")

	faster := failing("create "+id, temporal.ErrScheduleAlreadyRunning)
	require.NoError(t, nightly(time.Hour).Ensure(t.Context(), faster), "another caller was faster")
	gone := failing("delete", serviceerror.NewNotFound("no such Schedule"))
	require.NoError(t, connect.DeleteSchedule(t.Context(), gone, id))
}
