package signal

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	temporal "go.temporal.io/sdk/client"

	"holdfast.dev/holdfast/activities/fake"
	"holdfast.dev/holdfast/workflows/contract"
)

var errAway = errors.New("connection refused")

const name = "nightly"

// stubTemporal records the one signal that it is sent.
type stubTemporal struct {
	temporal.Client
	err     error
	id      string
	signal  string
	payload any
	options temporal.StartWorkflowOptions
	kind    any
	input   []any
}

// SignalWithStartWorkflow implements client.Client.
func (c *stubTemporal) SignalWithStartWorkflow(
	_ context.Context, id, signal string, payload any, options temporal.StartWorkflowOptions, kind any, input ...any,
) (temporal.WorkflowRun, error) {
	c.id, c.signal, c.payload, c.options, c.kind, c.input = id, signal, payload, options, kind, input
	return nil, c.err
}

// SignalWorkflow implements client.Client.
func (c *stubTemporal) SignalWorkflow(_ context.Context, id, run, signal string, payload any) error {
	c.id, c.signal, c.payload = id+run, signal, payload
	return c.err
}

func TestASignalStartsTheWorkflowThatServesTheObject(t *testing.T) {
	c := &stubTemporal{}
	w := &Temporal{Client: c, ClusterID: "west"}
	require.NoError(t, w.SignalWithStart(t.Context(), contract.KindBackup, fake.Ref(name), contract.Changed{Reason: "changed"}))
	assert.Equal(t, "west/nab/team/nightly/uid-nightly", c.id)
	assert.Equal(t, contract.SignalChanged, c.signal)
	assert.Equal(t, contract.Changed{Reason: "changed"}, c.payload)
	assert.Equal(t, contract.KindBackup.Workflow, c.kind)
	assert.Equal(t, []any{contract.ObjectInput{Cluster: "west", Ref: fake.Ref(name)}}, c.input)
	assert.Equal(t, temporal.StartWorkflowOptions{
		ID:                    "west/nab/team/nightly/uid-nightly",
		TaskQueue:             "holdfast-west",
		WorkflowTaskTimeout:   5 * time.Second,
		TypedSearchAttributes: contract.KindBackup.Attributes("west", fake.Ref(name)),
		StaticSummary:         "Backup of team/nightly",
		Priority:              fake.Ref(name).Fairness(),
	}, c.options)

	c.err = errAway
	err := w.SignalWithStart(t.Context(), contract.KindBackup, fake.Ref(name), contract.Changed{Reason: "changed"})
	require.ErrorIs(t, err, errAway)
	assert.ErrorContains(t, err, "signal workflow of NonAdminBackup team/nightly")
}

// The end of an object matters only to a workflow that runs.
func TestTheEndOfAnObjectStartsNoWorkflow(t *testing.T) {
	tests := map[string]struct {
		err     error
		wantErr bool
	}{
		"it runs":           {},
		"it does not run":   {err: serviceerror.NewNotFound("workflow execution already completed")},
		"Temporal is away":  {err: serviceerror.NewUnavailable("no"), wantErr: true},
		"any other error":   {err: errors.New("deadline"), wantErr: true},
		"no such namespace": {err: serviceerror.NewNamespaceNotFound("ns"), wantErr: true},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			c := &stubTemporal{err: test.err}
			w := &Temporal{Client: c, ClusterID: "west"}
			err := w.SignalRunning(t.Context(), contract.KindBackup, fake.Ref(name), contract.Changed{Reason: "deleted"})
			assert.Equal(t, "west/nab/team/nightly/uid-nightly", c.id, "whichever run it is")
			assert.Equal(t, contract.Changed{Reason: "deleted"}, c.payload)
			if test.wantErr {
				require.ErrorIs(t, err, test.err)
				return
			}
			require.NoError(t, err)
		})
	}
}
