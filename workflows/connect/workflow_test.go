package connect_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	querypb "go.temporal.io/api/query/v1"
	"go.temporal.io/api/serviceerror"
	temporal "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"holdfast.dev/holdfast/workflows/connect"
	"holdfast.dev/holdfast/workflows/contract"
)

var errAway = errors.New("connection refused")

var ref = contract.ObjectRef{Namespace: "team", Name: "nightly", UID: "uid-nightly"}

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
	w := &connect.Cluster{Client: c, ClusterID: "west"}
	require.NoError(t, w.SignalWithStart(t.Context(), contract.KindBackup, ref, contract.Changed{Reason: "changed"}))
	assert.Equal(t, "west/nab/team/nightly/uid-nightly", c.id)
	assert.Equal(t, contract.SignalChanged, c.signal)
	assert.Equal(t, contract.Changed{Reason: "changed"}, c.payload)
	assert.Equal(t, contract.KindBackup.Workflow, c.kind)
	assert.Equal(t, []any{contract.ObjectInput{Cluster: "west", Ref: ref}}, c.input)
	assert.Equal(t, temporal.StartWorkflowOptions{
		ID:                    "west/nab/team/nightly/uid-nightly",
		TaskQueue:             "holdfast-west",
		WorkflowTaskTimeout:   5 * time.Second,
		TypedSearchAttributes: contract.KindBackup.Attributes("west", ref),
		StaticSummary:         "Backup of team/nightly",
		Priority:              ref.Fairness(),
	}, c.options)

	c.err = errAway
	err := w.SignalWithStart(t.Context(), contract.KindBackup, ref, contract.Changed{Reason: "changed"})
	require.ErrorIs(t, err, errAway)
	assert.ErrorContains(t, err, "signal workflow west/nab/team/nightly/uid-nightly")
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
			w := &connect.Cluster{Client: c, ClusterID: "west"}
			err := w.SignalRunning(t.Context(), contract.KindBackup, ref, contract.Changed{Reason: "deleted"})
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

// queried is a Temporal that answers one query.
type queried struct {
	temporal.Client
	answer *temporal.QueryWorkflowWithOptionsResponse
	err    error
}

// QueryWorkflowWithOptions implements client.Client.
func (q queried) QueryWorkflowWithOptions(
	context.Context, *temporal.QueryWorkflowWithOptionsRequest,
) (*temporal.QueryWorkflowWithOptionsResponse, error) {
	return q.answer, q.err
}

func TestAQueryIsAnsweredByAWorkflowThatRuns(t *testing.T) {
	payloads, err := converter.GetDefaultDataConverter().ToPayloads(contract.TurnOrder{Paused: true})
	require.NoError(t, err)
	query := func(of queried) (order contract.TurnOrder, err error) {
		err = connect.QueryRunning(t.Context(), of, "west/velero-queue", contract.QueryTurnOrder, &order)
		return order, err
	}
	order, err := query(queried{answer: &temporal.QueryWorkflowWithOptionsResponse{QueryResult: temporal.NewValue(payloads)}})
	require.NoError(t, err)
	assert.True(t, order.Paused)
	_, err = query(queried{answer: &temporal.QueryWorkflowWithOptionsResponse{QueryRejected: &querypb.QueryRejected{}}})
	require.ErrorIs(t, err, connect.ErrNotRunning, "it has ended")
	_, err = query(queried{err: serviceerror.NewNotFound("unknown")})
	require.ErrorIs(t, err, connect.ErrNotRunning, "it never ran")
	_, err = query(queried{err: errAway})
	require.ErrorIs(t, err, errAway)
}
