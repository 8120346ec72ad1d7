package workflows_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"holdfast.dev/holdfast/workflows"
	"holdfast.dev/holdfast/workflows/contract"
)

// periodic runs a workflow of periodic work over activities that a test writes, and returns them in the order called.
type periodic struct {
	*testsuite.TestWorkflowEnvironment
	called []string
	sync   func() (contract.SynchronizationResult, error)
	swept  func() (contract.CollectionResult, error)
}

func newPeriodic() *periodic {
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	p := &periodic{
		TestWorkflowEnvironment: suite.NewTestWorkflowEnvironment(),
		sync:                    func() (contract.SynchronizationResult, error) { return contract.SynchronizationResult{}, nil },
		swept:                   func() (contract.CollectionResult, error) { return contract.CollectionResult{}, nil },
	}
	p.SetTestTimeout(10 * time.Second)
	workflows.Register(p, workflows.Options{})
	p.RegisterActivityWithOptions(
		func(context.Context, contract.SynchronizationInput) (contract.SynchronizationResult, error) {
			p.called = append(p.called, contract.ActivitySynchronizeBackups)
			return p.sync()
		}, activity.RegisterOptions{Name: contract.ActivitySynchronizeBackups})
	p.RegisterActivityWithOptions(
		func(context.Context, contract.CollectionInput) (contract.CollectionResult, error) {
			p.called = append(p.called, contract.ActivityCollectOrphans)
			return p.swept()
		}, activity.RegisterOptions{Name: contract.ActivityCollectOrphans})
	return p
}

func TestASynchronizationGoesOnWhileThereIsMore(t *testing.T) {
	p := newPeriodic()
	p.sync = func() (contract.SynchronizationResult, error) {
		return contract.SynchronizationResult{Made: 500, Untrusted: 7, More: len(p.called) < 3}, nil
	}
	p.ExecuteWorkflow(contract.WorkflowSynchronization, contract.SynchronizationInput{})
	require.NoError(t, p.GetWorkflowError())
	var result contract.SynchronizationResult
	require.NoError(t, p.GetWorkflowResult(&result))
	assert.Equal(t, contract.SynchronizationResult{Made: 1500, Untrusted: 7}, result)
}

func TestASynchronizationOutlastsAnOutage(t *testing.T) {
	p := newPeriodic()
	begin := p.Now()
	p.sync = func() (contract.SynchronizationResult, error) {
		if p.Now().Sub(begin) < time.Hour { // longer than one activity is retried
			return contract.SynchronizationResult{}, errors.New("connection refused")
		}
		return contract.SynchronizationResult{Made: 1}, nil
	}
	p.ExecuteWorkflow(contract.WorkflowSynchronization, contract.SynchronizationInput{})
	require.NoError(t, p.GetWorkflowError())
}

func TestAPermanentErrorFailsTheRun(t *testing.T) {
	p := newPeriodic()
	p.sync = func() (contract.SynchronizationResult, error) {
		return contract.SynchronizationResult{}, temporal.NewNonRetryableApplicationError("no", contract.ErrorInvalidObject, nil)
	}
	p.ExecuteWorkflow(contract.WorkflowCollection, contract.CollectionInput{})
	require.ErrorContains(t, p.GetWorkflowError(), contract.ErrorInvalidObject)
	assert.Equal(t, []string{contract.ActivitySynchronizeBackups}, p.called, "and nothing is collected")
}

func TestNothingIsCollectedBeforeTheBackupsAreBack(t *testing.T) {
	const waits = 4
	p := newPeriodic()
	p.sync = func() (contract.SynchronizationResult, error) {
		if len(p.called) <= waits {
			return contract.SynchronizationResult{Waiting: "default"}, nil
		}
		return contract.SynchronizationResult{Made: 3}, nil
	}
	want := contract.CollectionResult{Deleted: []contract.CollectedKind{{Kind: "Secret", Count: 2}}}
	p.swept = func() (contract.CollectionResult, error) { return want, nil }
	p.ExecuteWorkflow(contract.WorkflowCollection, contract.CollectionInput{})
	require.NoError(t, p.GetWorkflowError())
	var result contract.CollectionResult
	require.NoError(t, p.GetWorkflowResult(&result))
	assert.Equal(t, want, result)
	require.Len(t, p.called, waits+2)
	for i, name := range p.called {
		assert.Equal(t, i == waits+1, name == contract.ActivityCollectOrphans, "call %d: last of all", i)
	}
}

// A location that comes up between the two is seen by the collection itself.
func TestACollectionThatFindsANewLocationWaits(t *testing.T) {
	p := newPeriodic()
	p.swept = func() (contract.CollectionResult, error) {
		if len(p.called) < 3 {
			return contract.CollectionResult{Waiting: "own"}, nil
		}
		return contract.CollectionResult{}, nil
	}
	p.ExecuteWorkflow(contract.WorkflowCollection, contract.CollectionInput{})
	require.NoError(t, p.GetWorkflowError())
	assert.Equal(t, []string{
		contract.ActivitySynchronizeBackups, contract.ActivityCollectOrphans,
		contract.ActivitySynchronizeBackups, contract.ActivityCollectOrphans,
	}, p.called)
}

func TestACollectionDoesNotWaitForEver(t *testing.T) {
	p := newPeriodic()
	begin := p.Now()
	p.sync = func() (contract.SynchronizationResult, error) {
		return contract.SynchronizationResult{Waiting: "default"}, nil
	}
	p.ExecuteWorkflow(contract.WorkflowCollection, contract.CollectionInput{})
	require.NoError(t, p.GetWorkflowError())
	var result contract.CollectionResult
	require.NoError(t, p.GetWorkflowResult(&result))
	assert.Equal(t, contract.CollectionResult{Waiting: "default"}, result)
	assert.NotContains(t, p.called, contract.ActivityCollectOrphans)
	assert.InDelta(t, 30*time.Minute, p.Now().Sub(begin), float64(time.Minute))
}
