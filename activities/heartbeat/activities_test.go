package heartbeat_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/version"

	"holdfast.dev/holdfast/activities/heartbeat"
	"holdfast.dev/holdfast/workflows/contract"
)

// apiServer answers with a version, with an error, or, without both, not at all.
type apiServer struct {
	version string
	err     error
}

// ServerVersionWithContext implements discovery.ServerVersionInterfaceWithContext.
func (s apiServer) ServerVersionWithContext(ctx context.Context) (*version.Info, error) {
	if s.version == "" && s.err == nil {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &version.Info{GitVersion: s.version}, s.err
}

func TestAnAPIServerThatIsAwayIsAProblemAndNoError(t *testing.T) {
	const away = "the API server does not answer the worker: "
	for title, test := range map[string]struct {
		server apiServer
		want   contract.WorkerState
	}{
		"it answers": {apiServer{version: "v1.36.3"}, contract.WorkerState{Version: "v1", Build: "b7", Kubernetes: "v1.36.3"}},
		"refused":    {apiServer{err: errors.New("refused")}, contract.WorkerState{Version: "v1", Build: "b7", Problem: away + "refused"}},
		"silent":     {apiServer{}, contract.WorkerState{Version: "v1", Build: "b7", Problem: away + "context deadline exceeded"}},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			activities := &heartbeat.Activities{Discovery: test.server, Version: "v1", Build: "b7"}
			state, err := activities.Inspect(t.Context(), contract.HeartbeatInput{Cluster: "west"})
			require.NoError(t, err)
			assert.Equal(t, test.want, state)
		})
	}
}
