package codec_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/codec"
)

func fuzzKeys(f *testing.F, dir string) *codec.Keys {
	f.Helper()
	require.NoError(f, os.WriteFile(filepath.Join(dir, "current"), []byte("a"), 0o600))
	require.NoError(f, os.WriteFile(filepath.Join(dir, "a"), rawKey(1), 0o600))
	keys, err := codec.Open(dir)
	require.NoError(f, err)
	return keys
}

func TestValuesAreEncrypted(t *testing.T) {
	dc := codec.DataConverter(open(t, folder(t, map[string]string{"current": "a", "a": base64Key(1)})))
	payload, err := dc.ToPayload(map[string]string{"name": "nightly"})
	require.NoError(t, err)
	assert.Equal(t, codec.Encoding, string(payload.Metadata[converter.MetadataEncoding]))
	assert.NotContains(t, string(payload.Data), "nightly")
	assert.JSONEq(t, `{"name":"nightly"}`, dc.ToString(payload))
	var value map[string]string
	require.NoError(t, dc.FromPayload(payload, &value))
	assert.Equal(t, "nightly", value["name"])
}

// Errors name tenants' objects: their messages are content.
func TestErrorsAreEncrypted(t *testing.T) {
	keys := open(t, folder(t, map[string]string{"current": "a", "a": base64Key(1)}))
	failures := codec.FailureConverter(keys)
	failure := failures.ErrorToFailure(temporal.NewNonRetryableApplicationError("shop/nightly is bad", "InvalidObject", errors.New("inner")))
	assert.Equal(t, "Encoded failure", failure.Message)
	assert.Equal(t, "Encoded failure", failure.Cause.Message)
	assert.NotContains(t, failure.String(), "nightly")
	assert.Equal(t, "InvalidObject", failure.GetApplicationFailureInfo().Type, "types stay readable")
	require.ErrorContains(t, failures.FailureToError(failure), "shop/nightly is bad")

	// The failed attempt of a local activity: read first, stored afterwards.
	again := failures.ErrorToFailure(failures.FailureToError(failure))
	for _, stored := range []*failurepb.Failure{failure, again} {
		for ; stored != nil; stored = stored.Cause {
			assert.Equal(t, "Encoded failure", stored.Message)
			assert.Empty(t, stored.StackTrace)
		}
	}
	require.ErrorContains(t, failures.FailureToError(again), "shop/nightly is bad")

	// An error of a history in clear, passed on.
	passedOn := failures.ErrorToFailure(failures.FailureToError(&failurepb.Failure{
		Message: "shop/nightly", StackTrace: "there",
		FailureInfo: &failurepb.Failure_ApplicationFailureInfo{ApplicationFailureInfo: &failurepb.ApplicationFailureInfo{Type: "Old"}},
	}))
	assert.NotContains(t, passedOn.String(), "nightly")
	require.ErrorContains(t, failures.FailureToError(passedOn), "shop/nightly")

	assert.Nil(t, failures.ErrorToFailure(nil))
	require.NoError(t, failures.FailureToError(nil))

	inClear := codec.FailureConverter(codec.None()).ErrorToFailure(errors.New("shop/nightly is bad"))
	assert.Equal(t, "shop/nightly is bad", inClear.Message)
}

// Outside a workflow, as in `holdfast describe`, an unreadable payload is an error like others.
func TestAClientIsToldOfAnUnreadablePayload(t *testing.T) {
	payload, err := codec.DataConverter(open(t, folder(t, map[string]string{"current": "a", "a": base64Key(1)}))).ToPayload("x")
	require.NoError(t, err)
	var value string
	err = codec.DataConverter(codec.None()).FromPayload(payload, &value)
	require.ErrorContains(t, err, `payload encrypted with key "a": no key can be read without --payload-keys-dir`)
}

// historyOf is the start of a workflow with this input and one task.
func historyOf(input *commonpb.Payload) *historypb.History {
	return &historypb.History{Events: []*historypb.HistoryEvent{
		{EventId: 1, EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED, Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
			WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{
				WorkflowType: &commonpb.WorkflowType{Name: "reads"}, TaskQueue: &taskqueuepb.TaskQueue{Name: "q"},
				Input: &commonpb.Payloads{Payloads: []*commonpb.Payload{input}},
			},
		}},
		{EventId: 2, EventType: enumspb.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED, Attributes: &historypb.HistoryEvent_WorkflowTaskScheduledEventAttributes{
			WorkflowTaskScheduledEventAttributes: &historypb.WorkflowTaskScheduledEventAttributes{},
		}},
		{EventId: 3, EventType: enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED, Attributes: &historypb.HistoryEvent_WorkflowTaskStartedEventAttributes{
			WorkflowTaskStartedEventAttributes: &historypb.WorkflowTaskStartedEventAttributes{},
		}},
		{EventId: 4, EventType: enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED, Attributes: &historypb.HistoryEvent_WorkflowTaskCompletedEventAttributes{
			WorkflowTaskCompletedEventAttributes: &historypb.WorkflowTaskCompletedEventAttributes{},
		}},
		{EventId: 5, EventType: enumspb.EVENT_TYPE_TIMER_STARTED, Attributes: &historypb.HistoryEvent_TimerStartedEventAttributes{
			TimerStartedEventAttributes: &historypb.TimerStartedEventAttributes{TimerId: "5"},
		}},
	}}
}

// A workflow whose payloads cannot be read yet must not end: its task fails, to be tried again.
func TestAWorkflowStandsStillBeforeWhatItCannotRead(t *testing.T) {
	dir := folder(t, map[string]string{"current": "a", "a": base64Key(1)})
	payload, err := codec.DataConverter(open(t, dir)).ToPayload("nightly")
	require.NoError(t, err)
	replay := func(keys *codec.Keys) (read string, err error) {
		replayer, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{DataConverter: codec.DataConverter(keys)})
		require.NoError(t, err)
		replayer.RegisterWorkflowWithOptions(func(ctx workflow.Context, name string) error {
			read = name
			return workflow.Sleep(ctx, time.Hour)
		}, workflow.RegisterOptions{Name: "reads"})
		err = replayer.ReplayWorkflowHistory(log.NewStructuredLogger(slog.New(slog.DiscardHandler)), historyOf(payload))
		return read, err
	}
	_, err = replay(codec.None())
	require.EqualError(t, err, `payload encrypted with key "a": no key can be read without --payload-keys-dir`,
		"the task's; were it the workflow's, it would be wrapped, or the history would not match")

	read, err := replay(open(t, dir))
	require.NoError(t, err)
	assert.Equal(t, "nightly", read)
}
