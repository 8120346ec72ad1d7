package environment

import (
	"time"

	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
)

// New returns the suite's. Its limits are by the wall clock, and for what never comes. On a busy machine a workflow may not get
// to run for a second, which is no deadlock, and an activity may take many, in which the workflow is idle.
func New(suite *testsuite.WorkflowTestSuite) *testsuite.TestWorkflowEnvironment {
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(time.Minute)
	env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute})
	return env
}
