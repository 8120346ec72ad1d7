package env

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// store answers as Temporal does.
type store struct {
	workflowservice.UnimplementedWorkflowServiceServer
	err error
}

// ListNamespaces implements workflowservice.WorkflowServiceServer.
func (s *store) ListNamespaces(
	context.Context, *workflowservice.ListNamespacesRequest,
) (*workflowservice.ListNamespacesResponse, error) {
	return &workflowservice.ListNamespacesResponse{}, s.err
}

func TestADatabaseThatInterruptsEveryQueryIsNoticed(t *testing.T) {
	s := &store{}
	server := grpc.NewServer()
	workflowservice.RegisterWorkflowServiceServer(server, s)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() { _ = server.Serve(listener) }()
	connection, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	temporal := workflowservice.NewWorkflowServiceClient(connection)

	assert.False(t, interrupted(t.Context(), temporal))
	s.err = status.Error(codes.Unavailable, "ListNamespaces operation failed. Failed to get namespace rows. Error: interrupted (9)")
	assert.True(t, interrupted(t.Context(), temporal))
	s.err = status.Error(codes.Unavailable, "shutting down")
	assert.False(t, interrupted(t.Context(), temporal))
	server.Stop()
	soon, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	assert.False(t, interrupted(soon, temporal), "it does not answer")
}

func TestOnlyServerMeansTemporalsOwnServer(t *testing.T) {
	for value, want := range map[string]bool{"": false, "server": true} {
		t.Setenv(temporalVariable, value)
		wanted, err := wantsTemporalServer(Options{})
		require.NoError(t, err)
		require.Equal(t, want, wanted, value)
	}
	t.Setenv(temporalVariable, "dev")
	_, err := wantsTemporalServer(Options{})
	require.ErrorContains(t, err, `HOLDFAST_TEMPORAL="dev"`)
}
