package location

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	updatepb "go.temporal.io/api/update/v1"

	"holdfast.dev/holdfast/workflows/contract"
)

var errAway = errors.New("connection refused")

// history is a workflow's history, read by an iterator.
type history struct {
	events []*historypb.HistoryEvent
	err    error
}

func (h *history) HasNext() bool { return len(h.events) > 0 || h.err != nil }

func (h *history) Next() (*historypb.HistoryEvent, error) {
	if len(h.events) == 0 {
		return nil, h.err
	}
	next := h.events[0]
	h.events = h.events[1:]
	return next, nil
}

func updatedBy(id, identity string) *historypb.HistoryEvent {
	return &historypb.HistoryEvent{
		EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED,
		Attributes: &historypb.HistoryEvent_WorkflowExecutionUpdateAcceptedEventAttributes{
			WorkflowExecutionUpdateAcceptedEventAttributes: &historypb.WorkflowExecutionUpdateAcceptedEventAttributes{
				AcceptedRequest: &updatepb.Request{Meta: &updatepb.Meta{UpdateId: id, Identity: identity}},
			},
		},
	}
}

func signalledBy(signal, identity string) *historypb.HistoryEvent {
	return &historypb.HistoryEvent{
		EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED,
		Attributes: &historypb.HistoryEvent_WorkflowExecutionSignaledEventAttributes{
			WorkflowExecutionSignaledEventAttributes: &historypb.WorkflowExecutionSignaledEventAttributes{
				SignalName: signal, Identity: identity,
			},
		},
	}
}

func TestWhoseDecisionItIsIsInTheHistory(t *testing.T) {
	long := strings.Repeat("x", 1000)
	events := []*historypb.HistoryEvent{
		{EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED},
		signalledBy(contract.SignalChanged, "watcher"), signalledBy(contract.SignalDecide, "ann"),
		updatedBy("one", "bob"), signalledBy(contract.SignalChanged, "watcher"), signalledBy(contract.SignalDecide, "cid"),
		updatedBy("two", "dan"), updatedBy("nobody", ""), updatedBy("long", long),
	}
	tests := map[string]struct {
		step contract.DecisionStep
		want string
	}{
		"the first signal":               {contract.DecisionStep{SignalNumber: 1}, "ann"},
		"the second signal":              {contract.DecisionStep{SignalNumber: 2}, "cid"},
		"a signal that is not there":     {contract.DecisionStep{SignalNumber: 3}, "unknown"},
		"an Update":                      {contract.DecisionStep{UpdateID: "two"}, "dan"},
		"an Update that is not there":    {contract.DecisionStep{UpdateID: "three"}, "unknown"},
		"an Update of one without name":  {contract.DecisionStep{UpdateID: "nobody"}, "unknown"},
		"nothing that brought it":        {contract.DecisionStep{}, "unknown"},
		"an Update among signals before": {contract.DecisionStep{UpdateID: "one"}, "bob"},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			got, err := identityIn(&history{events: events}, test.step)
			require.NoError(t, err)
			assert.Equal(t, test.want, got)
		})
	}
	got, err := identityIn(&history{events: events}, contract.DecisionStep{UpdateID: "long"})
	require.NoError(t, err)
	assert.LessOrEqual(t, len(got), maxIdentityBytes)

	_, err = identityIn(&history{events: events, err: errAway}, contract.DecisionStep{UpdateID: "three"})
	require.ErrorIs(t, err, errAway)
}
