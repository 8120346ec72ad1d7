package cluster_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"

	"holdfast.dev/holdfast/workflows/contract"
)

func TestARestoreGoesThroughTheOwnerOfItsDestination(t *testing.T) {
	o := newOwned()
	o.lasting(10 * time.Second)
	restores := 0
	o.OnActivity(contract.RunFDBRestoreCommand.Name, mock.Anything, mock.Anything).
		Return(func(ctx context.Context, command contract.FDBCommand) (contract.FDBOutcome, error) {
			restores++
			return o.command(ctx, command)
		}).After(10 * time.Second)
	o.asks(0, "b", with(running(), contract.FDBStart))
	started := o.asks(1, "r", with(running(), contract.FDBRestoreStart))
	vetoed := o.asks(40, "b", with(pausing(), contract.FDBPause))
	refused := o.asks(50, "r", with(pausing(), contract.FDBRestoreStart))
	o.asks(60, "r", with(leaving(), contract.FDBRestoreAbort))
	o.asks(90, "b", leaving())
	o.run(t)
	assert.Equal(t, []string{"10 start b", "20 restore r", "70 abort-restore r"}, o.commands)
	assert.Equal(t, 2, restores)
	assert.True(t, started.Outcome.Done)
	assert.True(t, vetoed.Later, "a restore never wants a pause")
	assert.Equal(t, []string{"team/r"}, vetoed.Opposed)
	assert.ErrorContains(t, refused.err, "a restore cannot pause the agents")
}
