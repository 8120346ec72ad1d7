package location

import (
	"context"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"

	"holdfast.dev/holdfast/k8s/shorten"
	"holdfast.dev/holdfast/workflows/contract"
)

const maxIdentityBytes = 200

// HistoryIdentity returns which Temporal client sent a decision: it reads the history of the workflow that calls the activity.
// Temporal's clients choose their identity themselves.
func HistoryIdentity(ctx context.Context, step contract.DecisionStep) (string, error) {
	execution := activity.GetInfo(ctx).WorkflowExecution
	return identityIn(activity.GetClient(ctx).GetWorkflowHistory(ctx, execution.ID, execution.RunID, false,
		enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT), step)
}

func identityIn(events client.HistoryEventIterator, step contract.DecisionStep) (string, error) {
	signals := 0
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			return "", fmt.Errorf("read the workflow's history: %w", err)
		}
		if identity, found := senderOf(event, step, &signals); found && identity != "" {
			return shorten.Text(identity, maxIdentityBytes), nil
		}
	}
	return "unknown", nil
}

func senderOf(event *historypb.HistoryEvent, step contract.DecisionStep, signals *int) (string, bool) {
	if update := event.GetWorkflowExecutionUpdateAcceptedEventAttributes(); update != nil {
		meta := update.GetAcceptedRequest().GetMeta()
		return meta.GetIdentity(), step.UpdateID != "" && meta.GetUpdateId() == step.UpdateID
	}
	signal := event.GetWorkflowExecutionSignaledEventAttributes()
	if signal.GetSignalName() != contract.SignalDecide {
		return "", false
	}
	*signals++
	return signal.GetIdentity(), *signals == step.SignalNumber
}
