package activitytest

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"

	"holdfast.dev/holdfast/activities/finalization"
)

// Performed runs an activity of a finalization by its name.
func Performed[Out any](t *testing.T, f *finalization.Activities, name string, in any) (Out, error) {
	t.Helper()
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	f.Register(env)
	var out Out
	answer, err := env.ExecuteActivity(name, in)
	if err == nil {
		require.NoError(t, answer.Get(&out))
	}
	return out, err
}
