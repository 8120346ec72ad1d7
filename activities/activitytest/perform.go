package activitytest

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
)

// Registrar is what registers activities with a worker.
type Registrar interface{ Register(worker.ActivityRegistry) }

// Performed runs an activity under its wire name, as a worker does.
func Performed[Out any](t *testing.T, of Registrar, name string, in any) (Out, error) {
	t.Helper()
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	of.Register(env)
	var out Out
	answer, err := env.ExecuteActivity(name, in)
	if err == nil {
		require.NoError(t, answer.Get(&out))
	}
	return out, err
}
