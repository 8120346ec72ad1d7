package connect_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/grpc"

	"holdfast.dev/holdfast/workflows/connect"
	"holdfast.dev/holdfast/workflows/contract"
)

// beating is Temporal with the heartbeat of a cluster.
type beating struct {
	last   *contract.Heartbeat // nil: there is none
	status enumspb.WorkflowExecutionStatus
	sealed bool // with a key that is not here
	young  bool // it waits for a worker
	away   error
	noUID  error // the API server's
	asked  int
}

// service is its service of workflows.
type service struct {
	workflowservice.WorkflowServiceClient
	*beating
}

// DescribeWorkflowExecution implements workflowservice.WorkflowServiceClient.
func (s service) DescribeWorkflowExecution(
	_ context.Context, request *workflowservice.DescribeWorkflowExecutionRequest, _ ...grpc.CallOption,
) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	s.asked++
	if s.away != nil {
		return nil, s.away
	}
	if s.last == nil || request.GetNamespace() != "backups" || request.GetExecution().GetWorkflowId() != "west/heartbeat" {
		return nil, serviceerror.NewNotFound("workflow not found")
	}
	payload, err := converter.GetDefaultDataConverter().ToPayload(s.last)
	if s.sealed {
		payload.Metadata[converter.MetadataEncoding] = []byte("binary/encrypted")
	}
	info := &workflowpb.WorkflowExecutionInfo{Status: s.status}
	if !s.young {
		info.Memo = &commonpb.Memo{Fields: map[string]*commonpb.Payload{contract.MemoHeartbeat: payload}}
	}
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: info}, err
}

// reached is the client that reaches it.
type reached struct {
	client.Client
	*beating
}

// WorkflowService implements client.Client.
func (r reached) WorkflowService() workflowservice.WorkflowServiceClient {
	return service{beating: r.beating}
}

func (b *beating) check(uid string) *connect.ClusterCheck {
	temporal := &connect.Temporal{
		Client: reached{beating: b}, Namespace: "backups", Converter: converter.GetDefaultDataConverter(),
	}
	return connect.NewClusterCheck(temporal, "west", func(context.Context) (string, error) { return uid, b.noUID })
}

func heartbeatOf(uid string) *contract.Heartbeat {
	return &contract.Heartbeat{At: time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC), Watcher: contract.WatcherState{ClusterUID: uid}}
}

func TestAClusterIDBelongsToOneCluster(t *testing.T) {
	running, paused := enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, enumspb.WORKFLOW_EXECUTION_STATUS_PAUSED
	ended := enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED
	for title, test := range map[string]struct {
		beating   beating
		wantTaken bool
	}{
		"to none yet":                          {beating{}, false},
		"to this one":                          {beating{last: heartbeatOf("ours"), status: running}, false},
		"to another":                           {beating{last: heartbeatOf("theirs"), status: running}, true},
		"to another, and somebody paused that": {beating{last: heartbeatOf("theirs"), status: paused}, true},
		"to another, and somebody ended that":  {beating{last: heartbeatOf("theirs"), status: ended}, false},
		"to one with other keys":               {beating{last: heartbeatOf("theirs"), status: running, sealed: true}, false},
		"an earlier version has sent it":       {beating{last: heartbeatOf(""), status: running}, false},
	} {
		t.Run(title, func(t *testing.T) {
			check := test.beating.check("ours")
			assert.Empty(t, check.UID())
			err := check.Probe(t.Context())
			assert.Equal(t, "ours", check.UID())
			if !test.wantTaken {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, `cluster ID "west" belongs to another Kubernetes cluster in this Temporal namespace: its namespace `+
				`kube-system has UID theirs, here it is ours. Give each cluster its own `+
				`--cluster-id. If this cluster replaces the other one, which is gone for good: temporal workflow terminate `+
				`--namespace backups --workflow-id west/heartbeat`)
		})
	}
}

// ready is what a process waits for besides.
func ready(context.Context) error { return nil }

// A cluster that replaces another one waits until somebody says so, and three minutes more.
func TestAProcessWaitsForItsClusterID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &beating{last: heartbeatOf("theirs"), status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, noUID: errors.New("no API server")}
		begin := time.Now()
		core, logs := observer.New(zap.WarnLevel)
		check := b.check("ours")
		require.NoError(t, check.Await(t.Context(), zap.New(core), func(context.Context) error {
			if time.Since(begin) > time.Minute {
				b.noUID = nil
			}
			if time.Since(begin) > 61*time.Minute {
				b.last = nil
			}
			return nil
		}))
		assert.InDelta(t, (64 * time.Minute).Seconds(), time.Since(begin).Seconds(), 25)
		var reasons []string
		for _, entry := range logs.All() {
			reasons = append(reasons, entry.ContextMap()["error"].(string))
		}
		require.Len(t, reasons, 3, "each once")
		assert.Equal(t, "no API server", reasons[0])
		assert.Contains(t, reasons[1], "belongs to another Kubernetes cluster")
		assert.Contains(t, reasons[2], "Unless the one that had it takes it again, this process starts at 2000-01-01T01:04:")
		assert.LessOrEqual(t, b.asked, 6*64, "every ten seconds")
		assert.Empty(t, check.Taken(), "what it has waited for does not end it")
	})
}

// Nobody has released the ID while Temporal is away, has lost its database, or has a heartbeat that does not say whose it is. The
// owner's next heartbeat takes it again.
func TestAnOwnerKeepsItsClusterID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &beating{last: heartbeatOf("theirs"), status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING}
		waiting, owner := b.check("ours"), b.check("theirs")
		require.NoError(t, owner.Await(t.Context(), zap.NewNop(), ready))
		later := func(after time.Duration) error {
			time.Sleep(after)
			require.NoError(t, owner.Probe(t.Context()))
			return waiting.Probe(t.Context())
		}
		require.ErrorContains(t, later(0), "belongs to another Kubernetes cluster")
		b.sealed = true
		require.ErrorContains(t, later(time.Hour), "belongs to another Kubernetes cluster")
		b.sealed, b.away = false, errors.New("away")
		time.Sleep(time.Hour)
		require.ErrorContains(t, waiting.Probe(t.Context()), "away")
		b.last, b.away = nil, nil
		require.ErrorContains(t, later(0), "belongs to no Kubernetes cluster any more")
		require.ErrorContains(t, later(2*time.Minute), "belongs to no Kubernetes cluster any more")
		b.last = heartbeatOf("theirs")
		require.ErrorContains(t, later(time.Minute), "belongs to another Kubernetes cluster")
		assert.Empty(t, owner.Taken())
	})
}

// Both have started, and the other one was first.
func TestAProcessEndsWhoseClusterIDIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &beating{status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING}
		check := b.check("ours")
		require.NoError(t, check.Probe(t.Context()), "as a readiness probe does before Await")
		lost := errors.New("search attributes are missing")
		core, logs := observer.New(zap.WarnLevel)
		require.NoError(t, check.Await(t.Context(), zap.New(core), func(context.Context) (err error) {
			err, lost = lost, nil
			return err
		}))
		assert.Equal(t, 1, logs.FilterField(zap.Error(errors.New("search attributes are missing"))).Len())
		assert.Equal(t, 2, b.asked, "it starts by what holds now")

		b.last = heartbeatOf("theirs")
		require.NoError(t, check.Probe(t.Context()), "it asks once a minute")
		time.Sleep(time.Minute)
		b.away = serviceerror.NewResourceExhausted(enumspb.RESOURCE_EXHAUSTED_CAUSE_RPS_LIMIT, "busy")
		require.NoError(t, check.Probe(t.Context()), "nothing says that it is another one's")
		b.away = errors.New("away")
		require.ErrorContains(t, check.Probe(t.Context()), "away")
		assert.Empty(t, check.Taken())
		b.away = nil
		err := check.Probe(t.Context())
		require.Error(t, err)
		require.ErrorIs(t, <-check.Taken(), err)
	})
}
