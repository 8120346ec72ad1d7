package coordination

import (
	"context"

	"holdfast.dev/holdfast/workflows/contract"
)

// maxAttributeName is the longest value that every visibility store of Temporal takes.
const maxAttributeName = 255

// RequestContainer sends the ask to the guard of a container, which it starts if it does not run, and waits for the answer.
func (c *Activities) RequestContainer(
	ctx context.Context, ask contract.FDBContainerRequest,
) (contract.FDBContainerAnswer, error) {
	shown := ask.Container[:min(len(ask.Container), maxAttributeName)]
	return consult[contract.FDBContainerAnswer](ctx, c.Temporal, consultation{
		id: contract.FDBContainerID(ask.Container), kind: contract.KindFDBContainer,
		input: contract.FDBContainerInput{Container: ask.Container}, name: shown, update: contract.UpdateFDBContainer, ask: ask,
	})
}
