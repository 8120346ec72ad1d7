package production_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	temporalclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"

	"holdfast.dev/holdfast/test/tenants"
	"holdfast.dev/holdfast/workflows/contract"
)

// store is Temporal. It is called without the SDK where the answer is the point: the SDK retries what a column has refused.
type store struct {
	t        testing.TB
	temporal temporalclient.Client
}

type startRequest = workflowservice.StartWorkflowExecutionRequest

func newStore(r *rig) *store { return &store{r.T, tenants.Temporal(r.T, r.Env)} }

// start starts a workflow that no worker serves, until the end of the test, and returns its ID and the server's answer.
func (s *store) start(change func(*startRequest)) (string, error) {
	s.t.Helper()
	request := &startRequest{
		Namespace: temporalclient.DefaultNamespace, RequestId: uuid.NewString(), WorkflowId: uuid.NewString(),
		WorkflowType: &commonpb.WorkflowType{Name: "Unserved"}, TaskQueue: &taskqueuepb.TaskQueue{Name: "unserved"},
	}
	change(request)
	_, err := s.temporal.WorkflowService().StartWorkflowExecution(s.t.Context(), request)
	if err == nil {
		s.t.Cleanup(func() { // a workflow that a test has brought to its end cannot be terminated
			_ = s.temporal.TerminateWorkflow(context.Background(), request.WorkflowId, "", "the test has ended")
		})
	}
	return request.WorkflowId, err
}

// list returns the workflows that a query finds.
func (s *store) list(ctx context.Context, query string) ([]*workflowpb.WorkflowExecutionInfo, error) {
	page, err := s.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: query})
	return page.GetExecutions(), err
}

// long is a text of so many characters.
func long(of string, characters int) string { return strings.Repeat(of, characters) }

// keyword is a search attribute of type Keyword.
func keyword(t testing.TB, name, value string) *commonpb.SearchAttributes {
	t.Helper()
	payload, err := converter.GetDefaultDataConverter().ToPayload(value)
	require.NoError(t, err)
	return &commonpb.SearchAttributes{IndexedFields: map[string]*commonpb.Payload{name: payload}}
}

// input and memo have so many bytes in all, as the server counts them.
func input(bytes int) *commonpb.Payloads {
	return sized(bytes, func(payload *commonpb.Payload) *commonpb.Payloads {
		return &commonpb.Payloads{Payloads: []*commonpb.Payload{payload}}
	})
}

func memo(bytes int) *commonpb.Memo {
	return sized(bytes, func(payload *commonpb.Payload) *commonpb.Memo {
		return &commonpb.Memo{Fields: map[string]*commonpb.Payload{"memo": payload}}
	})
}

func sized[M proto.Message](bytes int, around func(*commonpb.Payload) M) M {
	for data := bytes; ; {
		made := around(&commonpb.Payload{Data: make([]byte, data)})
		differs := bytes - proto.Size(made)
		if differs == 0 {
			return made
		}
		data += differs
	}
}

// sizeOf is the size of a memo with that value, as the server counts it.
func sizeOf(t testing.TB, value any) int {
	t.Helper()
	payload, err := converter.GetDefaultDataConverter().ToPayload(value)
	require.NoError(t, err)
	return proto.Size(&commonpb.Memo{Fields: map[string]*commonpb.Payload{contract.MemoHeartbeat: payload}})
}
