package call_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/workflowtest/environment"
)

var double = contract.Activity[int, int]{Name: "double", Summary: "Double a number"}

type caller func(workflow.Context, call.Limits, contract.Activity[int, int], int) (int, error)

// ran is what a call has led to.
type ran struct {
	out            int
	err            error
	local, regular int // attempts
	took           time.Duration
}

// run calls an activity, whose attempts end with these errors and then with success.
func run(t *testing.T, how caller, limits call.Limits, failures ...error) ran {
	t.Helper()
	var done ran
	env := environment.New(&testsuite.WorkflowTestSuite{})
	env.RegisterActivityWithOptions(func(_ context.Context, in int) (int, error) {
		if len(failures) > 0 {
			err := failures[0]
			failures = failures[1:]
			return 0, err
		}
		return 2 * in, nil
	}, activity.RegisterOptions{Name: double.Name})
	env.SetOnLocalActivityStartedListener(func(*activity.Info, context.Context, []any) { done.local++ })
	env.SetOnActivityStartedListener(func(*activity.Info, context.Context, converter.EncodedValues) { done.regular++ })
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		began := workflow.Now(ctx)
		done.out, done.err = how(ctx, limits, double, 21)
		done.took = workflow.Now(ctx).Sub(began)
		return nil
	})
	require.True(t, env.IsWorkflowCompleted())
	require.NoError(t, env.GetWorkflowError())
	return done
}

func TestTheUsualPathIsOneLocalAttempt(t *testing.T) {
	assert.Equal(t, ran{out: 42, local: 1}, run(t, call.LocalFirst[int, int], call.Limits{}))
}

func TestWhatMayPassIsRetriedInTheRegularForm(t *testing.T) {
	away := errors.New("connection refused")
	done := run(t, call.LocalFirst[int, int], call.Limits{}, away, away, away)
	assert.Equal(t, ran{out: 42, local: 1, regular: 3, took: 3 * time.Second}, done, "after 1 and 2 seconds")
	done = run(t, call.Durable[int, int], call.Limits{}, away)
	assert.Equal(t, ran{out: 42, regular: 2, took: time.Second}, done)
}

func TestItIsScheduledAnewWhenTheResourceTimeoutHasPassed(t *testing.T) {
	failures := make([]error, 10)
	for i := range failures {
		failures[i] = errors.New("connection refused")
	}
	limits := call.Limits{ResourceTimeout: 10 * time.Second}
	assert.Equal(t, 42, run(t, call.Recorded[int, int], limits, failures...).out)
	assert.Equal(t, 10*time.Second, limits.Timeout())
	assert.Equal(t, 10*time.Minute, call.Limits{}.Timeout())
}

func TestAPermanentErrorEndsTheCall(t *testing.T) {
	invalid := temporal.NewNonRetryableApplicationError("spec.ttl: too long", contract.ErrorInvalidObject, nil)
	for name, how := range map[string]caller{
		"local": call.LocalFirst[int, int], "durable": call.Durable[int, int], "recorded": call.Recorded[int, int],
	} {
		done := run(t, how, call.Limits{}, invalid)
		require.Error(t, done.err, name)
		assert.Equal(t, "spec.ttl: too long", call.Cause(done.err))
		assert.Equal(t, 1, done.local+done.regular, name)
	}
}
