package fleet_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/types/known/timestamppb"
	"k8s.io/utils/ptr"

	"holdfast.dev/holdfast/starter/fleet"
	"holdfast.dev/holdfast/workflows/contract"
)

var now = time.Now().UTC().Truncate(time.Second)

// server is Temporal with heartbeats, of which it lists one a page, and with open workflows.
type server struct {
	client.Client
	t     *testing.T
	beats []*workflowpb.WorkflowExecutionInfo
	open  map[string]int64
	err   error
}

// ListWorkflow implements client.Client.
func (s *server) ListWorkflow(
	_ context.Context, request *workflowservice.ListWorkflowExecutionsRequest,
) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	assert.Equal(s.t, "WorkflowType = 'ClusterHeartbeat' AND ExecutionStatus = 'Running'", request.Query)
	if s.err != nil || len(s.beats) == 0 {
		return &workflowservice.ListWorkflowExecutionsResponse{}, s.err
	}
	page := len(request.NextPageToken)
	answer := &workflowservice.ListWorkflowExecutionsResponse{Executions: s.beats[page : page+1]}
	if page+1 < len(s.beats) {
		answer.NextPageToken = make([]byte, page+1)
	}
	return answer, nil
}

// CountWorkflow implements client.Client.
func (s *server) CountWorkflow(
	_ context.Context, request *workflowservice.CountWorkflowExecutionsRequest,
) (*workflowservice.CountWorkflowExecutionsResponse, error) {
	for cluster, open := range s.open {
		if strings.HasPrefix(request.Query, fmt.Sprintf("HoldfastCluster = '%s' AND ExecutionStatus = 'Running'", cluster)) {
			return &workflowservice.CountWorkflowExecutionsResponse{Count: open}, nil
		}
	}
	return &workflowservice.CountWorkflowExecutionsResponse{}, nil
}

func beat(t *testing.T, cluster string, heartbeat *contract.Heartbeat) *workflowpb.WorkflowExecutionInfo {
	t.Helper()
	info := &workflowpb.WorkflowExecutionInfo{
		Execution: &commonpb.WorkflowExecution{WorkflowId: contract.HeartbeatID(cluster)},
		StartTime: timestamppb.New(now.Add(-time.Hour)), Memo: &commonpb.Memo{},
	}
	if heartbeat != nil {
		payload, err := converter.GetDefaultDataConverter().ToPayload(heartbeat)
		require.NoError(t, err)
		info.Memo.Fields = map[string]*commonpb.Payload{contract.MemoHeartbeat: payload}
	}
	return info
}

func read(t *testing.T, s *server) (*fleet.Clusters, error) {
	t.Helper()
	s.t = t
	return fleet.Read(t.Context(), s, converter.GetDefaultDataConverter(), now)
}

func TestTheFleetIsShownAsItsHeartbeatsSay(t *testing.T) {
	fresh := &contract.Heartbeat{
		At: now.Add(-20 * time.Second),
		Watcher: contract.WatcherState{Version: "v0.2.0", Unfinished: 2, ObjectivesMissed: 1, VerificationsMissed: 2, Oldest: &contract.UnfinishedObject{
			Kind: "NonAdminBackup", Namespace: "shop", Name: "nightly", Created: now.Add(-3 * time.Hour),
		}},
		Worker: contract.WorkerState{Version: "v0.2.0", Build: "b7", Kubernetes: "v1.36.3"},
	}
	ill := &contract.Heartbeat{
		At: now, Watcher: contract.WatcherState{Version: "v1", Problem: "paused"}, Worker: contract.WorkerState{Version: "v1", Problem: "refused\nhere"},
	}
	old := &contract.Heartbeat{At: now.Add(-14 * time.Minute), Watcher: contract.WatcherState{Version: "v0.1.0"}}
	unreadable := beat(t, "locked", fresh)
	unreadable.Memo.Fields[contract.MemoHeartbeat].Metadata["encoding"] = []byte("binary/encrypted")
	found, err := read(t, &server{
		beats: []*workflowpb.WorkflowExecutionInfo{
			beat(t, "west", fresh), beat(t, "away", old), beat(t, "ill", ill), beat(t, "new", nil), unreadable,
			beat(t, "x' OR 'a", fresh),
		},
		open: map[string]int64{"west": 12, "away": 3},
	})
	require.NoError(t, err)
	require.Len(t, found.Clusters, 5)
	of := map[string]fleet.Cluster{}
	for _, cluster := range found.Clusters {
		of[cluster.ID] = cluster
	}
	assert.Equal(t, fleet.Cluster{ID: "west", Heartbeat: fresh, Open: ptr.To[int64](12)}, of["west"])
	assert.Equal(t, fleet.Cluster{
		ID: "away", Heartbeat: old, Open: ptr.To[int64](3), Silent: true,
		Problem: "silent for 14m: its API server does not answer, or its watcher or worker does not run or reach Temporal",
	}, of["away"])
	assert.Equal(t, "paused; refused\nhere", of["ill"].Problem)
	assert.True(t, of["new"].Silent)
	assert.Contains(t, of["locked"].Problem, "the heartbeat cannot be read: ")

	var table bytes.Buffer
	require.NoError(t, found.Print(&table))
	lines := strings.Split(strings.TrimSpace(table.String()), "\n")
	require.Len(t, lines, 6, table.String())
	assert.Equal(t, strings.Fields("CLUSTER HEARTBEAT WATCHER WORKER KUBERNETES OPEN UNFINISHED OLDEST MISSED PROBLEM"), strings.Fields(lines[0]))
	assert.Regexp(t, `^west +\S+ +v0\.2\.0 +v0\.2\.0 \(b7\) +v1\.36\.3 +12 +2 +3h\S* shop/nightly +3`, lines[5])
	assert.Contains(t, lines[2], `refused\nhere`, "on its line")
}

// Who has access to Temporal can start workflows of any ID. Where one run continues another, visibility may list both.
func TestAClusterIsShownOnce(t *testing.T) {
	stranger, earlier, later := beat(t, "west", nil), beat(t, "west", nil), beat(t, "west", &contract.Heartbeat{
		At: now.Add(time.Hour), Watcher: contract.WatcherState{Version: strings.Repeat("v", 200)},
	})
	stranger.Execution.WorkflowId = "west"
	later.StartTime = timestamppb.New(now.Add(-time.Minute))
	for _, listed := range [][]*workflowpb.WorkflowExecutionInfo{{stranger, earlier, later}, {later, stranger, earlier}} {
		found, err := read(t, &server{beats: listed})
		require.NoError(t, err)
		require.Len(t, found.Clusters, 1)
		assert.Equal(t, "the clocks differ: its heartbeat is of 60m from now", found.Clusters[0].Problem)
		var table bytes.Buffer
		require.NoError(t, found.Print(&table))
		assert.NotContains(t, table.String(), strings.Repeat("v", 100))
	}
}

func TestAFleetWithoutClusters(t *testing.T) {
	found, err := read(t, &server{})
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, found.Print(&out))
	assert.Contains(t, out.String(), "No cluster has sent a heartbeat")
	_, err = read(t, &server{err: errors.New("refused")})
	assert.ErrorContains(t, err, "list the heartbeats in Temporal: refused")
}
