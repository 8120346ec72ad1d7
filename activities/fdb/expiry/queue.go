package expiry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/k8s/metrics"
	"holdfast.dev/holdfast/workflows/connect"
	"holdfast.dev/holdfast/workflows/contract"
)

// turnClosingAttempts is how often the start of a turn waits for an earlier one of the same backup to close.
const turnClosingAttempts = 4

// Coordination sends signals to the workflows that expire and delete FoundationDB backups, the queue and the turns, and starts
// them.
type Coordination struct {
	// Temporal is the client of the namespace in which they run.
	Temporal client.Client
}

// Register registers the activities with a worker under their wire names.
func (c *Coordination) Register(registry worker.ActivityRegistry) {
	activities.RegisterEffect(registry, contract.SignalFDBExpiryQueue, c.SignalQueue)
	activities.RegisterEffect(registry, contract.StartFDBExpiry, c.StartTurn)
	activities.RegisterEffect(registry, contract.ReportFDBTurn, c.ReportTurn)
}

// SignalQueue signals the request to the queue, which it starts if it does not run.
func (c *Coordination) SignalQueue(ctx context.Context, request contract.FDBQueueRequest) error {
	return connect.FDBExpiryQueue(request.Cluster).SignalWithStart(ctx, c.Temporal, contract.SignalExpiryEntry, request)
}

// StartTurn starts the workflow of a turn. It leaves one alone that runs already: there are never two for one backup. It does not
// start a turn again that ran when this activity was scheduled and has ended since: an earlier attempt may have started it. An
// input that Temporal rejects is not retried.
func (c *Coordination) StartTurn(ctx context.Context, in contract.FDBExpiryInput) error {
	err := c.startTurn(ctx, in)
	var invalid *serviceerror.InvalidArgument
	if errors.As(err, &invalid) {
		return temporal.NewNonRetryableApplicationError(err.Error(), contract.ErrorFDBQueueInvalid, err)
	}
	return err
}

func (c *Coordination) startTurn(ctx context.Context, in contract.FDBExpiryInput) error {
	turn := connect.FDBTurn(in)
	done, err := c.turnStarted(ctx, turn.Options.ID, in)
	if done || err != nil {
		return err
	}
	return turn.Ensure(ctx, c.Temporal)
}

// turnStarted reports whether the turn runs, or ran when this activity was scheduled. If an earlier turn of the same backup has
// reported its end and is about to close, it returns an error: the activity is retried, but not for long. If that turn does not
// close, the queue finds out and starts this one later.
func (c *Coordination) turnStarted(ctx context.Context, id string, in contract.FDBExpiryInput) (bool, error) {
	run, err := connect.Describe(ctx, c.Temporal, id)
	if run == nil || err != nil {
		return false, err
	}
	info, earlier := activity.GetInfo(ctx), run.GetStartTime().AsTime().Unix() < in.Turn
	if connect.Ended(run) {
		return !earlier && !run.GetCloseTime().AsTime().Before(info.ScheduledTime), nil
	}
	if earlier && info.Attempt <= turnClosingAttempts {
		return false, fmt.Errorf("an earlier turn of %s is still ending", in.Ref)
	}
	return true, nil
}

// ReportTurn signals the state of a turn to the backup's workflow and to the queue. The backup comes first: after it, the queue
// may forget the turn.
func (c *Coordination) ReportTurn(ctx context.Context, reports contract.FDBTurnReports) error {
	if reports.Result != nil {
		err := connect.ForObject(contract.KindFDBBackup, reports.Cluster, reports.Ref).
			SignalWithStart(ctx, c.Temporal, contract.SignalExpiryResult, *reports.Result)
		if err != nil {
			return err
		}
	}
	if reports.Report != nil {
		err := connect.FDBExpiryQueue(reports.Cluster).SignalWithStart(ctx, c.Temporal, contract.SignalExpiryTurn, *reports.Report)
		if err != nil {
			return err
		}
	}
	if result := reports.Result; result != nil { // once, after both signals
		took := time.Duration(result.At-result.Turn) * time.Second
		metrics.FDBTurnEnded(string(result.Job), string(result.Outcome), took)
	}
	return nil
}
