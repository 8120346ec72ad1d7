package failpoint

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// A local activity's time stands while its process does, and is not longer than in the product afterwards.
func TestTheTimeOfALocalActivityStandsWithItsProcess(t *testing.T) {
	// stood is far longer than what happens beside it takes on a busy machine.
	const limit, stood = time.Minute, 2 * time.Second
	var answered time.Time
	test := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if answered.IsZero() { // before the activity
			time.Sleep(stood)
			answered = time.Now()
		}
	}))
	defer test.Close()
	t.Setenv(EnvURL, test.URL)
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(time.Minute)
	env.SetWorkerOptions(worker.Options{
		Interceptors:             []interceptor.WorkerInterceptor{Interceptor()},
		DeadlockDetectionTimeout: time.Minute, // on a busy machine a workflow may not get to run for a second
	})
	var left time.Duration
	var deadline time.Time
	env.RegisterActivityWithOptions(func(ctx context.Context) error {
		ends, is := ctx.Deadline()
		if !is {
			return errors.New("no deadline")
		}
		deadline, left = ends, time.Until(ends)
		return nil
	}, activity.RegisterOptions{Name: "act"})
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{StartToCloseTimeout: limit})
		return workflow.ExecuteLocalActivity(ctx, "act").Get(ctx, nil)
	})
	require.NoError(t, env.GetWorkflowError())
	assert.Greater(t, deadline.Sub(answered), limit-stood)
	assert.LessOrEqual(t, left, limit)
}
