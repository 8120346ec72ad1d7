package coordination

import (
	"context"

	"holdfast.dev/holdfast/workflows/contract"
)

// maxAttributeName is the longest value that every visibility store of Temporal accepts.
const maxAttributeName = 255

// RequestContainer sends the request to the guard of a container, which it starts if it does not run, and waits for the answer.
func (c *Activities) RequestContainer(
	ctx context.Context, in contract.FDBContainerRequest,
) (contract.FDBContainerAnswer, error) {
	shown := in.Container[:min(len(in.Container), maxAttributeName)]
	return consult[contract.FDBContainerAnswer](ctx, c.Temporal, request{
		id: contract.FDBContainerID(in.Container), kind: contract.KindFDBContainer,
		input: contract.FDBContainerInput{Container: in.Container}, name: shown, update: contract.UpdateFDBContainer, content: in,
	})
}
