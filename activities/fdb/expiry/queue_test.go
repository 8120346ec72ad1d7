package expiry_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"google.golang.org/protobuf/types/known/timestamppb"

	"holdfast.dev/holdfast/activities/fdb/expiry"
	"holdfast.dev/holdfast/k8s/metrics/metricstest"
	"holdfast.dev/holdfast/workflows/contract"
)

// sentSignal is a signal and the workflow that it starts.
type sentSignal struct {
	id, name string
	payload  any
	workflow any
	input    any
}

// turnStarter is a Temporal that records starts and signals.
type turnStarter struct {
	client.Client
	err     error                             // of starts
	there   *workflowpb.WorkflowExecutionInfo // the workflow's last run; nil if there is none
	unknown error                             // of descriptions of it
	failing string
	starts  []client.StartWorkflowOptions
	started []any
	signals []sentSignal
}

func (s *turnStarter) DescribeWorkflowExecution(
	_ context.Context, id, _ string,
) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	switch {
	case s.unknown != nil:
		return nil, s.unknown
	case s.there == nil:
		return nil, serviceerror.NewNotFound(id)
	}
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: s.there}, nil
}

func (s *turnStarter) ExecuteWorkflow(
	_ context.Context, options client.StartWorkflowOptions, workflow any, args ...any,
) (client.WorkflowRun, error) {
	s.starts = append(s.starts, options)
	s.started = append(s.started, workflow, args[0])
	return nil, s.err
}

func (s *turnStarter) SignalWithStartWorkflow(
	_ context.Context, id, name string, payload any, options client.StartWorkflowOptions, workflow any, args ...any,
) (client.WorkflowRun, error) {
	if name == s.failing {
		return nil, errors.New("away")
	}
	s.starts = append(s.starts, options)
	s.signals = append(s.signals, sentSignal{id, name, payload, workflow, args[0]})
	return nil, nil
}

func (s *turnStarter) run(name string, in any) error {
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	(&expiry.Coordination{Temporal: s}).Register(env)
	_, err := env.ExecuteActivity(name, in)
	return err
}

var ledgerRef = contract.ObjectRef{Namespace: "shop", Name: "ledger", UID: "u-1"}

const ledgerTurn = "west/fdb-expiry/shop/ledger/u-1"

func TestATurnIsStartedOnce(t *testing.T) {
	in := contract.FDBExpiryInput{Cluster: "west", Ref: ledgerRef, Job: contract.FDBJobExpire, Turn: 7}
	tests := map[string]struct {
		err  error
		want string
	}{
		"it does not run":     {},
		"Temporal is away":    {err: serviceerror.NewUnavailable("away"), want: "start workflow " + ledgerTurn + ": away"},
		"Temporal rejects it": {err: serviceerror.NewInvalidArgument("too long"), want: "start workflow " + ledgerTurn + ": too long"},
		"it may not be done":  {err: serviceerror.NewPermissionDenied("no", ""), want: "start workflow " + ledgerTurn + ": no"},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			s := &turnStarter{err: test.err}
			err := s.run(contract.StartFDBExpiry.Name, in)
			if test.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, test.want)
				var application *temporal.ApplicationError
				require.ErrorAs(t, err, &application)
				assert.Equal(t, title == "Temporal rejects it", application.NonRetryable())
			}
			assert.Equal(t, []any{contract.KindFDBExpiry.Workflow, in}, s.started)
			options := s.starts[0]
			assert.Equal(t, ledgerTurn, options.ID)
			assert.Equal(t, "holdfast-fdb-west.workflows", options.TaskQueue)
			assert.Equal(t, enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING, options.WorkflowIDConflictPolicy, "it may run already")
			assert.Zero(t, options.WorkflowIDReusePolicy, "earlier turns do not matter")
			assert.Equal(t, "5s", options.WorkflowTaskTimeout.String(), "what the kill of a worker costs")
			assert.Equal(t, "Turn of FoundationDB backup shop/ledger: expire", options.StaticSummary)
			assert.Equal(t, contract.KindFDBBackup.Attributes("west", ledgerRef), options.TypedSearchAttributes)
		})
	}
}

func TestAReportIsSignalledToBackupAndQueue(t *testing.T) {
	s := &turnStarter{}
	request := contract.FDBQueueRequest{Cluster: "west", Ref: ledgerRef, Job: contract.FDBJobDelete}
	report := contract.FDBTurnReport{Ref: ledgerRef, Turn: 7, Ended: true, Outcome: contract.FDBTurnDone}
	result := contract.FDBExpiryResult{Job: contract.FDBJobExpire, Turn: 7, At: 9, Outcome: contract.FDBTurnDone, Reason: "Expired"}
	require.NoError(t, s.run(contract.SignalFDBExpiryQueue.Name, request))
	require.NoError(t, s.run(contract.ReportFDBTurn.Name, contract.FDBTurnReports{
		Cluster: "west", Ref: ledgerRef, Report: &report, Result: &result,
	}))
	require.NoError(t, s.run(contract.ReportFDBTurn.Name, contract.FDBTurnReports{Cluster: "west", Ref: ledgerRef}), "nothing to report")
	toQueue := func(name string, payload any) sentSignal {
		return sentSignal{
			"west/fdb-expiry-queue", name, payload,
			contract.KindFDBExpiryQueue.Workflow,
			contract.FDBExpiryQueueInput{Cluster: "west"},
		}
	}
	assert.Equal(t, []sentSignal{
		toQueue(contract.SignalExpiryEntry, request),
		{
			"west/fdbb/shop/ledger/u-1", contract.SignalExpiryResult, result,
			contract.KindFDBBackup.Workflow,
			contract.ObjectInput{Cluster: "west", Ref: ledgerRef},
		},
		toQueue(contract.SignalExpiryTurn, report),
	}, s.signals, "the backup hears of it before the queue forgets it")
	for _, options := range s.starts {
		assert.Equal(t, "holdfast-fdb-west.workflows", options.TaskQueue)
		assert.Equal(t, "5s", options.WorkflowTaskTimeout.String())
		assert.NotEmpty(t, options.StaticSummary)
		for key := range options.TypedSearchAttributes.GetUntypedValues() {
			assert.Contains(t, contract.SearchAttributeNames(), key.GetName())
		}
	}
}

func TestAReportThatFailsIsAnError(t *testing.T) {
	reports := contract.FDBTurnReports{
		Cluster: "west", Ref: ledgerRef, Report: &contract.FDBTurnReport{Ref: ledgerRef}, Result: &contract.FDBExpiryResult{},
	}
	s := &turnStarter{failing: contract.SignalExpiryResult}
	require.ErrorContains(t, s.run(contract.ReportFDBTurn.Name, reports), "signal workflow west/fdbb/shop/ledger/u-1: away")
	assert.Empty(t, s.signals, "the queue is signalled after the backup")
	s = &turnStarter{failing: contract.SignalExpiryTurn}
	require.ErrorContains(t, s.run(contract.ReportFDBTurn.Name, reports), "signal workflow west/fdb-expiry-queue: away")
}

// Turn 1000 is to be started now.
func TestATurnThatRanWhenItsStartWasScheduledIsNotStartedAgain(t *testing.T) {
	run := func(started int64, closed time.Time) *workflowpb.WorkflowExecutionInfo {
		info := &workflowpb.WorkflowExecutionInfo{
			Status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, StartTime: timestamppb.New(time.Unix(started, 0)),
		}
		if !closed.IsZero() {
			info.Status, info.CloseTime = enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, timestamppb.New(closed)
		}
		return info
	}
	soon, earlier := time.Now().Add(time.Hour), time.Now().Add(-time.Hour)
	tests := map[string]struct {
		there   *workflowpb.WorkflowExecutionInfo
		unknown error
		starts  bool
		want    string
	}{
		"it never ran":                        {starts: true},
		"it runs":                             {there: run(1000, time.Time{})},
		"it has ended since":                  {there: run(1000, soon)},
		"it had ended before, without a word": {there: run(1000, earlier), starts: true},
		"an earlier turn ended before":        {there: run(900, earlier), starts: true},
		"an earlier turn has ended since":     {there: run(900, soon), starts: true},
		"an earlier turn is about to end":     {there: run(900, time.Time{}), want: "an earlier turn of shop/ledger is still ending"},
		"nobody knows":                        {unknown: errors.New("away"), want: "describe workflow " + ledgerTurn + ": away"},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			s := &turnStarter{there: test.there, unknown: test.unknown}
			err := s.run(contract.StartFDBExpiry.Name, contract.FDBExpiryInput{Cluster: "west", Ref: ledgerRef, Turn: 1000})
			assert.Equal(t, test.starts, len(s.started) > 0)
			if test.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, test.want)
		})
	}
}

func TestATurnIsCountedWhenItsResultIsReported(t *testing.T) {
	const turns, seconds = `holdfast_fdb_expiry_turns_total{job="delete",outcome="NotYet"}`, `holdfast_fdb_expiry_turn_seconds{job="delete"}`
	result := contract.FDBExpiryResult{Job: contract.FDBJobDelete, Turn: 100, At: 190, Outcome: contract.FDBTurnNotYet}
	reporting := func(reports contract.FDBTurnReports) func() {
		reports.Cluster, reports.Ref = "west", ledgerRef
		return func() { require.NoError(t, (&turnStarter{}).run(contract.ReportFDBTurn.Name, reports)) }
	}
	took := metricstest.Sum(t, seconds)
	assert.InDelta(t, 1, metricstest.Counted(t, turns, reporting(contract.FDBTurnReports{Result: &result})), 0)
	assert.InDelta(t, 90, metricstest.Sum(t, seconds)-took, 1e-9)
	report := contract.FDBTurnReport{Ref: ledgerRef, Turn: 100, Ended: true, Outcome: contract.FDBTurnNotYet}
	assert.Zero(t, metricstest.Counted(t, turns, reporting(contract.FDBTurnReports{Report: &report})), "the queue gets a report of the same turn")
}
