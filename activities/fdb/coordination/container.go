package coordination

import (
	"context"

	"holdfast.dev/holdfast/workflows/contract"
)

// RequestContainer sends the request to the guard of a container, which it starts if it does not run, and waits for the answer.
func (c *Activities) RequestContainer(
	ctx context.Context, in contract.FDBContainerRequest,
) (contract.FDBContainerAnswer, error) {
	return consult[contract.FDBContainerAnswer](ctx, c.Temporal, request{
		id: contract.FDBContainerID(in.Container), kind: contract.KindFDBContainer,
		input: contract.FDBContainerInput{Container: in.Container}, name: in.Container,
		update: contract.UpdateFDBContainer, content: in,
	})
}
