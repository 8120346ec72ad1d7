package drill_test

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"

	"holdfast.dev/holdfast/activities/fdb/drill"
	"holdfast.dev/holdfast/activities/fdbtool"
	"holdfast.dev/holdfast/workflows/contract"
)

// A target that cannot be read is retried, but not for a drill that is being deleted.
func TestNothingIsReadForADrillThatIsBeingDeleted(t *testing.T) {
	w := admitted().world(t)
	runner := &fdbtool.Runner{TempDir: t.TempDir()} // without tools nothing can be read
	t.Cleanup(func() { assert.NoError(t, runner.Close()) })
	read := func(activity string) error {
		suite := &testsuite.WorkflowTestSuite{}
		suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
		env := suite.NewTestActivityEnvironment()
		(&drill.Tools{Reader: w.Client, Runner: runner}).Register(env)
		_, err := env.ExecuteActivity(activity, contract.FDBDrillStep{Ref: ref})
		return err
	}
	both := []string{contract.SurveyFDBDrill.Name, contract.CheckFDBDrill.Name}
	for _, activity := range both {
		require.ErrorContains(t, read(activity), "--fdb-bin-dir", activity)
	}
	require.NoError(t, w.Delete(t.Context(), w.drill()))
	for _, activity := range both {
		require.NoError(t, read(activity), activity)
	}
}
