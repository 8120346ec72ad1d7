package codec

import (
	"context"
	"errors"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
)

// DataConverter returns the default converter with payloads encrypted. To be used even without keys: a process that
// lacks them must not treat an encrypted payload as broken.
//
// A workflow with a payload that cannot be read waits: its task fails, is shown with the reason, and is retried until the key
// is there. An error instead would end the workflow, lose a signal, or be shown as a failed activity.
func DataConverter(keys *Keys) converter.DataConverter {
	return &dataConverter{converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), New(keys))}
}

type dataConverter struct{ converter.DataConverter }

var _ converter.ContextAware = (*dataConverter)(nil)

// WithWorkflowContext implements converter.ContextAware.
func (d *dataConverter) WithWorkflowContext(converter.WorkflowContext) converter.DataConverter {
	return &inWorkflow{d.DataConverter}
}

// WithContext implements converter.ContextAware.
func (d *dataConverter) WithContext(context.Context) converter.DataConverter { return d }

// inWorkflow is used by workflow code alone. A panic there is the SDK's way to fail the task and not the workflow.
type inWorkflow struct{ converter.DataConverter }

// FromPayload implements converter.DataConverter.
func (d *inWorkflow) FromPayload(payload *commonpb.Payload, value any) error {
	return standStill(d.DataConverter.FromPayload(payload, value))
}

// FromPayloads implements converter.DataConverter.
func (d *inWorkflow) FromPayloads(payloads *commonpb.Payloads, values ...any) error {
	return standStill(d.DataConverter.FromPayloads(payloads, values...))
}

func standStill(err error) error {
	if unreadable := (*UnreadableError)(nil); errors.As(err, &unreadable) {
		panic(unreadable) //nolint:forbidigo // the SDK fails the workflow task, and tries it again
	}
	return err
}
