package workflows

import (
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
)

// fdbLimits are those of the worker's flags that a decision depends on.
type fdbLimits struct {
	ResourceTimeout, SnapshotTimeout time.Duration
}

const defaultSnapshotTimeout = 30 * time.Minute

// limits are recorded in the history whenever they change: a worker with other flags must replay what was decided.
func (r *fdbBackupRun) limits(ctx workflow.Context) fdbLimits {
	present := func(workflow.Context) any {
		limits := fdbLimits{ResourceTimeout: r.options.Timeout(), SnapshotTimeout: r.options.FDBSnapshotTimeout}
		if limits.SnapshotTimeout <= 0 {
			limits.SnapshotTimeout = defaultSnapshotTimeout
		}
		return limits
	}
	same := func(a, b any) bool { return a == b }
	var limits fdbLimits
	if err := workflow.MutableSideEffect(ctx, "fdb-limits", present, same).Get(&limits); err != nil {
		workflow.GetLogger(ctx).Error("limits in the history not readable, the defaults hold", "error", err)
		return fdbLimits{ResourceTimeout: call.DefaultResourceTimeout, SnapshotTimeout: defaultSnapshotTimeout}
	}
	return limits
}

// see keeps the view that an activity has returned.
func (r *fdbBackupRun) see(view contract.FDBBackupView, err error) error {
	if err != nil {
		return err
	}
	r.view = view
	return nil
}

// Limits of the activities that run FoundationDB's tools.
const (
	toolsPickUp      = time.Minute // by a worker with the tools
	toolsHeartbeat   = 20 * time.Second
	inspectTimeout   = 6 * time.Minute
	inspectAttempts  = 3
	maxCommandsInRow = 8
)

// inspect asks FoundationDB. That it does not answer is no error but what was found.
func (r *fdbBackupRun) inspect(ctx workflow.Context) error {
	if r.view.Owner == "" {
		r.seen = contract.FDBInspection{}
		return nil
	}
	limit, attempts := inspectTimeout, int32(inspectAttempts)
	if r.ending() {
		r.deep, limit, attempts = false, 2*endingLimit, 1
	}
	seen, err := call.Execute(ctx, workflow.ActivityOptions{
		TaskQueue:              contract.FDBTaskQueue(r.in.Cluster),
		ScheduleToStartTimeout: toolsPickUp,
		StartToCloseTimeout:    limit,
		HeartbeatTimeout:       toolsHeartbeat,
		RetryPolicy:            &temporal.RetryPolicy{InitialInterval: call.RetryInterval, MaximumAttempts: attempts},
	}, contract.InspectFDBBackup, contract.FDBInspect{Ref: r.in.Ref, Deep: r.deep})
	if temporal.IsCanceledError(err) {
		return err
	}
	if err != nil {
		seen = contract.FDBInspection{Trouble: toolTrouble(r.in.Cluster, err)}
	}
	if !r.deep && seen.Trouble == nil {
		seen.Containers = r.seen.Containers // of the last deep look
	}
	r.seen, r.deep, r.deepened = seen, false, r.deep
	r.in.Memory = fdb.Notice(r.situation(), workflow.Now(ctx), r.limits(ctx).SnapshotTimeout)
	return nil
}

// notTaken says what is known of work that no worker has begun: Temporal does not tell why.
func notTaken(what, queue string, within time.Duration) string {
	return fmt.Sprintf("no worker took %s from task queue %s within %s, and it was not run: either no holdfast-worker with "+
		"--fdb-bin-dir serves that queue ('temporal task-queue describe --task-queue %s' shows who does), or those that do are busy",
		what, queue, within, queue)
}

// toolTrouble says why an activity of the tools' queue has failed, or never began.
func toolTrouble(cluster string, err error) *contract.FDBTrouble {
	var timeout *temporal.TimeoutError
	if errors.As(err, &timeout) && timeout.TimeoutType() == enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START {
		return &contract.FDBTrouble{Class: contract.FDBClassNoWorker, Message: notTaken(
			"the look at the database", contract.FDBTaskQueue(cluster), toolsPickUp)}
	}
	return &contract.FDBTrouble{Class: contract.FDBClassOther, Message: call.Cause(err)}
}

// operate runs what is due, one command after the other, and tells the owner and the throttle what they must know.
func (r *fdbBackupRun) operate(ctx workflow.Context) error {
	var last contract.FDBCommand
	for range maxCommandsInRow {
		if err := r.tell(ctx); err != nil {
			return err
		}
		switch decision := fdb.Decide(r.situation()); decision.Step {
		case fdb.StepPlan:
			if trouble := fdb.Occupied(r.situation(), workflow.Now(ctx)); trouble != nil {
				r.failed = &fdb.Attempt{Operation: contract.FDBStart, Trouble: trouble}
				return r.giveBack(ctx, trouble)
			}
			if err := r.plan(ctx); err != nil || !fdb.Planned(r.view) {
				r.undue = true
				return err
			}
			if err := r.useNew(ctx, false); err != nil {
				return err
			}
		case fdb.StepCommand:
			if decision.Command == last {
				return nil // it has had no effect that shows; the next look tells
			}
			last = decision.Command
			if goOn, err := r.command(ctx, decision.Command); err != nil || !goOn {
				return err
			}
		case fdb.StepSlot: // nothing until it is granted
			return nil
		default:
			r.failed = nil
			return nil
		}
	}
	return nil
}

// tell brings the owner and the throttle up to date.
func (r *fdbBackupRun) tell(ctx workflow.Context) error {
	if r.memory().Owner != "" && r.memory().Owner != r.view.Owner && r.view.Owner != "" {
		if err := r.leave(ctx); err != nil { // the cluster was made anew
			return err
		}
		r.news = true
	}
	if r.news && r.view.Owner != "" && !fdb.Stopping(r.view) {
		answer, err := r.ask(ctx, contract.FDBAsk{})
		if err != nil {
			return err
		}
		r.news = answer.Outcome != nil // it has not answered
	}
	if wish := fdb.SlotWish(r.situation()); wish != "" {
		return r.tellThrottle(ctx, wish)
	}
	return nil
}

func (r *fdbBackupRun) plan(ctx workflow.Context) error {
	return r.see(call.LocalFirst(ctx, r.options.Limits, contract.PlanFDBBackup,
		contract.FDBPlan{Ref: r.in.Ref, Generation: r.view.Generation, At: workflow.Now(ctx).Unix()}))
}

// command has a command run, and reports whether the pass goes on.
func (r *fdbBackupRun) command(ctx workflow.Context, command contract.FDBCommand) (bool, error) {
	command.Ref, r.failed = r.in.Ref, nil
	r.memory().Starting = command.Operation == contract.FDBStart
	answer, err := r.ask(ctx, contract.FDBAsk{Command: &command})
	if err != nil {
		return false, err
	}
	outcome := answer.Outcome
	switch {
	case answer.Later || outcome == nil:
		return false, r.putOff(ctx, command.Operation)
	case outcome.Trouble != nil:
		r.failed = &fdb.Attempt{Operation: command.Operation, Trouble: outcome.Trouble}
		if command.Next != "" {
			r.failed.Operation = contract.FDBStart // which the abort is the first half of
		}
		return false, r.giveBack(ctx, outcome.Trouble)
	case outcome.Undue:
		r.undue = true
		return false, nil
	}
	switch command.Operation {
	case contract.FDBStart:
		if err := r.useNew(ctx, true); err != nil {
			return false, err
		}
	case contract.FDBPause:
		r.memory().Paused = true
	case contract.FDBResume:
		r.memory().Paused = false
	}
	r.deep = true
	return true, r.inspect(ctx)
}

// putOff deals with a command that the owner did not run: others' commands took the time, or the agents are not this backup's
// alone.
func (r *fdbBackupRun) putOff(ctx workflow.Context, operation contract.FDBOperation) error {
	r.memory().Quiet = 0
	switch operation {
	case contract.FDBResume:
		if fdb.Stopping(r.view) {
			r.memory().Paused = false // the pause is wanted by those that stay
		}
	case contract.FDBStart, contract.FDBModify, contract.FDBAbort:
		trouble := &contract.FDBTrouble{
			Class: contract.FDBClassOther, Message: "the commands of other backups of the FoundationDB cluster have taken all the time",
		}
		r.failed = &fdb.Attempt{Operation: operation, Trouble: trouble}
		return r.giveBack(ctx, trouble)
	}
	return nil
}

// giveBack lets others have the slot of a start that has failed; this backup asks again before it tries again. One that was
// killed may have had its effect: the next look tells. While a first snapshot is written the slot is for that, whatever fails.
func (r *fdbBackupRun) giveBack(ctx workflow.Context, trouble *contract.FDBTrouble) error {
	granted := r.memory().Slot == contract.FDBSlotGranted
	if !granted || trouble.Class == contract.FDBClassTimeout || r.situation().WritesFirstSnapshot() {
		return nil
	}
	return r.tellThrottle(ctx, contract.FDBWishRelease)
}
