package periodic_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"holdfast.dev/holdfast/workflows"
	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/workflowtest/environment"
)

// periodic runs a workflow of periodic work over activities that a test writes, and returns them in the order called.
type periodic struct {
	*testsuite.TestWorkflowEnvironment
	called []string
	sync   func() (contract.SynchronizationResult, error)
	probed func() (contract.CollectionResult, error)
	swept  func() (contract.CollectionResult, error)
}

// probe is the name under which a test finds the activity that only asks.
const probe = "probe"

func newPeriodic() *periodic {
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	p := &periodic{
		TestWorkflowEnvironment: environment.New(suite),
		sync:                    func() (contract.SynchronizationResult, error) { return contract.SynchronizationResult{}, nil },
		probed:                  func() (contract.CollectionResult, error) { return contract.CollectionResult{}, nil },
		swept:                   func() (contract.CollectionResult, error) { return contract.CollectionResult{}, nil },
	}
	workflows.Register(p, call.Options{})
	p.RegisterActivityWithOptions(
		func(context.Context, contract.ScheduledInput) (contract.SynchronizationResult, error) {
			p.called = append(p.called, contract.SynchronizeBackups.Name)
			return p.sync()
		}, activity.RegisterOptions{Name: contract.SynchronizeBackups.Name})
	p.RegisterActivityWithOptions(
		func(_ context.Context, in contract.CollectionInput) (contract.CollectionResult, error) {
			if in.Probe {
				p.called = append(p.called, probe)
				return p.probed()
			}
			p.called = append(p.called, contract.CollectOrphans.Name)
			return p.swept()
		}, activity.RegisterOptions{Name: contract.CollectOrphans.Name})
	return p
}

func TestASynchronizationGoesOnWhileThereIsMore(t *testing.T) {
	p := newPeriodic()
	p.sync = func() (contract.SynchronizationResult, error) {
		return contract.SynchronizationResult{Made: 500, Untrusted: 7, More: len(p.called) < 3}, nil
	}
	p.ExecuteWorkflow(contract.KindSynchronization.Workflow, contract.ScheduledInput{})
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
	p.ExecuteWorkflow(contract.KindSynchronization.Workflow, contract.ScheduledInput{})
	require.NoError(t, p.GetWorkflowError())
}

func TestAPermanentErrorFailsTheRun(t *testing.T) {
	p := newPeriodic()
	p.sync = func() (contract.SynchronizationResult, error) {
		return contract.SynchronizationResult{}, temporal.NewNonRetryableApplicationError("no", contract.ErrorInvalidObject, nil)
	}
	p.ExecuteWorkflow(contract.KindCollection.Workflow, contract.CollectionInput{})
	require.ErrorContains(t, p.GetWorkflowError(), contract.ErrorInvalidObject)
	assert.Equal(t, []string{probe, contract.SynchronizeBackups.Name}, p.called, "and nothing is collected")
}

func TestNothingIsCollectedBeforeTheBackupsAreBack(t *testing.T) {
	p := newPeriodic()
	p.probed = func() (contract.CollectionResult, error) {
		if len(p.called) < 4 {
			return contract.CollectionResult{Waiting: "default"}, nil
		}
		return contract.CollectionResult{}, nil
	}
	p.sync = func() (contract.SynchronizationResult, error) {
		return contract.SynchronizationResult{Made: 3, More: len(p.called) < 7}, nil
	}
	want := contract.CollectionResult{Deleted: []contract.CollectedKind{{Kind: "Secret", Count: 2}}}
	p.swept = func() (contract.CollectionResult, error) { return want, nil }
	p.ExecuteWorkflow(contract.KindCollection.Workflow, contract.CollectionInput{})
	require.NoError(t, p.GetWorkflowError())
	var result contract.CollectionResult
	require.NoError(t, p.GetWorkflowResult(&result))
	assert.Equal(t, want, result)
	sync := contract.SynchronizeBackups.Name
	assert.Equal(t, []string{probe, probe, probe, probe, sync, sync, sync, contract.CollectOrphans.Name}, p.called,
		"waiting costs no synchronization")
}

// A location that comes up meanwhile is seen by the synchronization, and by the collection itself.
func TestACollectionThatFindsANewLocationWaits(t *testing.T) {
	p := newPeriodic()
	p.sync = func() (contract.SynchronizationResult, error) {
		if len(p.called) < 3 {
			return contract.SynchronizationResult{Waiting: "new"}, nil
		}
		return contract.SynchronizationResult{}, nil
	}
	p.swept = func() (contract.CollectionResult, error) {
		if len(p.called) < 6 {
			return contract.CollectionResult{Waiting: "newer"}, nil
		}
		return contract.CollectionResult{}, nil
	}
	p.ExecuteWorkflow(contract.KindCollection.Workflow, contract.CollectionInput{})
	require.NoError(t, p.GetWorkflowError())
	sync, collect := contract.SynchronizeBackups.Name, contract.CollectOrphans.Name
	assert.Equal(t, []string{probe, sync, probe, sync, collect, probe, sync, collect}, p.called)
}

func TestACollectionDoesNotWaitForEver(t *testing.T) {
	p := newPeriodic()
	begin := p.Now()
	p.probed = func() (contract.CollectionResult, error) { return contract.CollectionResult{Waiting: "default"}, nil }
	p.ExecuteWorkflow(contract.KindCollection.Workflow, contract.CollectionInput{})
	require.NoError(t, p.GetWorkflowError())
	var result contract.CollectionResult
	require.NoError(t, p.GetWorkflowResult(&result))
	assert.Equal(t, contract.CollectionResult{Waiting: "default"}, result)
	assert.Subset(t, []string{probe}, p.called)
	assert.InDelta(t, 30*time.Minute, p.Now().Sub(begin), float64(time.Minute))
}

// Somebody who fills his bucket faster than its backups are offered does not keep the others' orphans.
func TestBackupsWithoutEndDoNotStopTheCollection(t *testing.T) {
	p := newPeriodic()
	passes := 0
	p.OnActivity(contract.SynchronizeBackups.Name, mock.Anything, mock.Anything).After(time.Minute).Return(
		func(context.Context, contract.ScheduledInput) (contract.SynchronizationResult, error) {
			passes++
			return contract.SynchronizationResult{Made: 500, More: true}, nil
		})
	p.ExecuteWorkflow(contract.KindCollection.Workflow, contract.CollectionInput{})
	require.NoError(t, p.GetWorkflowError())
	assert.Equal(t, []string{probe, contract.CollectOrphans.Name}, p.called)
	assert.InDelta(t, 30, passes, 2)
}
