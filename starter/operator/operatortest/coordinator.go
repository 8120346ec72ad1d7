package operatortest

import (
	"context"

	enumspb "go.temporal.io/api/enums/v1"
	querypb "go.temporal.io/api/query/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"holdfast.dev/holdfast/workflows/contract"
)

// Coordinator is a Temporal in which only a coordinator answers: queries with a state S, Updates with an answer.
type Coordinator[S any] struct {
	client.Client
	// ID is the coordinator's workflow ID.
	ID    string
	State *S
	// Closed: it has ended.
	Closed bool
	// Err is the error of each query and Update, if it is set.
	Err    error
	Answer contract.TurnAnswer
	// Busy is how often it still continues as new when it is called.
	Busy int
	// Update is the last one that was sent.
	Update client.UpdateWorkflowOptions
}

// QueryWorkflowWithOptions answers with the state.
func (c *Coordinator[S]) QueryWorkflowWithOptions(
	_ context.Context, request *client.QueryWorkflowWithOptionsRequest,
) (*client.QueryWorkflowWithOptionsResponse, error) {
	if request.WorkflowID != c.ID || request.QueryType != contract.QueryState {
		return nil, serviceerror.NewNotFound(request.WorkflowID)
	}
	if c.Closed && request.QueryRejectCondition == enumspb.QUERY_REJECT_CONDITION_NOT_OPEN {
		return &client.QueryWorkflowWithOptionsResponse{QueryRejected: &querypb.QueryRejected{}}, nil
	}
	if c.Err != nil {
		return nil, c.Err
	}
	payloads, err := converter.GetDefaultDataConverter().ToPayloads(c.State)
	if err != nil {
		return nil, err
	}
	return &client.QueryWorkflowWithOptionsResponse{QueryResult: client.NewValue(payloads)}, nil
}

// UpdateWorkflow notes the Update.
func (c *Coordinator[S]) UpdateWorkflow(
	_ context.Context, options client.UpdateWorkflowOptions,
) (client.WorkflowUpdateHandle, error) {
	c.Update = options
	if c.Busy > 0 {
		c.Busy--
		return nil, serviceerror.NewWorkflowNotReady("it continues as new")
	}
	return answered{answer: c.Answer}, c.Err
}

type answered struct {
	client.WorkflowUpdateHandle
	answer contract.TurnAnswer
}

func (a answered) Get(_ context.Context, into any) error {
	*into.(*contract.TurnAnswer) = a.answer
	return nil
}
