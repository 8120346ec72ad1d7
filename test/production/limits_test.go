package production_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"google.golang.org/grpc/codes"

	"holdfast.dev/holdfast/workflows/connect"
	"holdfast.dev/holdfast/workflows/contract"
)

const mebibyte = 1 << 20

// Each limit of the server, and the most that Holdfast gives it: for names at Kubernetes' limits, or as a unit test has it.
func TestWhatTheStoreRefuses(t *testing.T) {
	s := newStore(onSharedStack(t, "refused"))
	for name, limit := range map[string]struct {
		most, ours int // in bytes
		warns      int // from where the server's log warns, if it does
		give       func(to *startRequest, bytes int)
		// refused is the answer to one byte more. The SDK retries what is Unavailable: its caller waits, in vain.
		refused string
		code    codes.Code
	}{
		"a workflow ID": {
			most: 255, ours: len(contract.WorkflowID(longestCluster, contract.KindBackup, longestRef)),
			give:    func(to *startRequest, bytes int) { to.WorkflowId = long("i", bytes) },
			refused: "value too long for type character varying(255)", code: codes.Unavailable,
		},
		"a fairness key": {
			most: 64, ours: len(longestRef.Fairness().FairnessKey),
			give:    func(to *startRequest, bytes int) { to.Priority = &commonpb.Priority{FairnessKey: long("f", bytes)} },
			refused: "fairness key length exceeds limit", code: codes.InvalidArgument,
		},
		"a memo": {
			most: 2 * mebibyte, ours: largestMemo(t), warns: 2 << 10,
			give:    func(to *startRequest, bytes int) { to.Memo = memo(bytes) },
			refused: "Memo size exceeds limit", code: codes.InvalidArgument,
		},
		"an input": { // as any payload; ours is measured by TestTheFullestQueueFitsIntoAPayload in workflows/queue
			most:    2 * mebibyte,
			give:    func(to *startRequest, bytes int) { to.Input = input(bytes) },
			refused: "Blob data size exceeds limit", code: codes.InvalidArgument,
		},
	} {
		t.Run(name, func(t *testing.T) {
			assert.LessOrEqual(t, limit.ours, cmp.Or(limit.warns, limit.most))
			_, err := s.start(func(to *startRequest) { limit.give(to, limit.most) })
			require.NoError(t, err)
			_, err = s.start(func(to *startRequest) { limit.give(to, limit.most+1) })
			require.ErrorContains(t, err, limit.refused)
			assert.Equal(t, limit.code, serviceerror.ToStatus(err).Code())
			t.Logf("%d bytes are accepted; the answer to one more: %v", limit.most, err)
		})
	}
	_, err := s.start(func(to *startRequest) { to.WorkflowId = long("i", 1001) })
	require.ErrorContains(t, err, "exceeds maximum allowed length (1001/1000)", "the frontend alone would take 1,000")
}

// A search attribute that its column cannot hold is accepted, and the workflow runs. No query ever finds it.
func TestALongSearchAttributeHidesItsWorkflow(t *testing.T) {
	r := onSharedStack(t, "hidden")
	s := newStore(r)
	const column, frontend = 255, 2048
	start := func(value string) (string, error) {
		return s.start(func(to *startRequest) { to.SearchAttributes = keyword(t, contract.AttributeName.GetName(), value) })
	}
	attributes := contract.KindFDBContainer.Attributes("", contract.ObjectRef{Name: longestContainer})
	ours, _ := attributes.GetKeyword(contract.AttributeName)
	assert.Len(t, ours, column)
	hidden, err := start(long("h", column+1))
	require.NoError(t, err)
	found, err := start(ours)
	require.NoError(t, err)
	_, err = start(long("h", frontend+1-len(`""`)))
	require.ErrorContains(t, err, "value size 2049 exceeds size limit 2048")
	t.Log(err)

	s.awaitListed(fmt.Sprintf("HoldfastName = '%s'", ours), found)
	runs, err := s.list(t.Context(), fmt.Sprintf("WorkflowId = '%s'", hidden))
	require.NoError(t, err)
	assert.Empty(t, runs)
	described, err := connect.Describe(t.Context(), s.temporal, hidden)
	require.NoError(t, err)
	assert.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, described.GetStatus())
}

// Temporal terminates a workflow whose history is larger than 50 MiB. From 4 MiB on it suggests to continue as new; Holdfast does.
func TestAHistoryIsContinuedLongBeforeItIsTerminated(t *testing.T) {
	r := onSharedStack(t, "history")
	s := newStore(r)
	payload := long("x", 2*mebibyte-100)
	t.Run("terminated", func(t *testing.T) {
		id, err := s.start(func(*startRequest) {})
		require.NoError(t, err)
		for signals := 0; err == nil; signals++ {
			require.Less(t, signals, 30, "nothing has ended it")
			err = s.temporal.SignalWorkflow(t.Context(), id, "", "large", payload)
		}
		require.ErrorContains(t, err, "Workflow history size exceeds limit")
		last := s.last(id)
		assert.Equal(t, "Workflow history size exceeds limit.", last.GetWorkflowExecutionTerminatedEventAttributes().GetReason())
		described, err := connect.Describe(t.Context(), s.temporal, id)
		require.NoError(t, err)
		t.Logf("terminated with a history of %d bytes", described.GetHistorySizeBytes())
		assert.Greater(t, described.GetHistorySizeBytes(), int64(50*mebibyte))
	})
	t.Run("continued", func(t *testing.T) {
		w := connect.Heartbeat(r.ClusterID())
		first := ""
		r.Await(func(ctx context.Context) error {
			described, err := connect.Describe(ctx, s.temporal, w.Options.ID)
			if err == nil && described.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
				err = errors.New("the watcher has sent no heartbeat yet")
			}
			first = described.GetExecution().GetRunId()
			return err
		})
		for range 3 { // the watcher's own come, too
			require.NoError(t, s.temporal.SignalWorkflow(t.Context(), w.Options.ID, "", contract.SignalHeartbeat,
				map[string]string{"unknown": payload}))
		}
		r.Await(func(ctx context.Context) error {
			described, err := s.temporal.DescribeWorkflowExecution(ctx, w.Options.ID, first)
			info := described.GetWorkflowExecutionInfo()
			if err == nil && info.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW {
				err = fmt.Errorf("the run has %d bytes, and goes on: %s", info.GetHistorySizeBytes(), info.GetStatus())
			}
			if err == nil {
				t.Logf("continued as new after a history of %d bytes", info.GetHistorySizeBytes())
			}
			return err
		})
		next, err := connect.Describe(t.Context(), s.temporal, w.Options.ID)
		require.NoError(t, err)
		assert.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, next.GetStatus())
		assert.Less(t, next.GetHistorySizeBytes(), int64(mebibyte))
	})
}

// last is the last event of a workflow.
func (s *store) last(id string) (last *historypb.HistoryEvent) {
	s.t.Helper()
	events := s.temporal.GetWorkflowHistory(s.t.Context(), id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		require.NoError(s.t, err)
		last = event
	}
	return last
}

// largestMemo is the size of a heartbeat of a cluster, in which all is as long as it can be.
func largestMemo(t *testing.T) int {
	t.Helper()
	problem := long("p", 200) // starter/watch/heartbeat and activities/heartbeat cut it there
	now := contract.Heartbeat{
		Watcher: contract.WatcherState{
			Sent: time.Now().UTC().Truncate(time.Second), Version: long("v", 128), ClusterUID: uuid.NewString(), Problem: problem,
			Oldest: &contract.UnfinishedObject{
				Kind: contract.KindBackup.Kubernetes, Namespace: longestRef.Namespace, Name: longestRef.Name,
			},
		},
		Worker: contract.WorkerState{Version: long("v", 128), Build: long("b", 128), Kubernetes: long("k", 64), Problem: problem},
	}
	bytes := sizeOf(t, now)
	t.Logf("the largest memo has %d bytes", bytes)
	return bytes
}
