package backup

import (
	"cmp"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/fdb/requests"
)

// flagLimits are the worker's flags on which a decision depends.
type flagLimits struct {
	ResourceTimeout, SnapshotTimeout time.Duration
}

const defaultSnapshotTimeout = 30 * time.Minute

func (r *backupRun) limits(ctx workflow.Context) flagLimits {
	fallback := flagLimits{ResourceTimeout: call.DefaultResourceTimeout, SnapshotTimeout: defaultSnapshotTimeout}
	return call.Flag(ctx, "fdb-limits", flagLimits{
		ResourceTimeout: r.Options.Timeout(), SnapshotTimeout: cmp.Or(max(0, r.Options.FDBSnapshotTimeout), defaultSnapshotTimeout),
	}, fallback)
}

// inspect reads the state from FoundationDB. If it does not answer, that is a finding, not an error.
func (r *backupRun) inspect(ctx workflow.Context) error {
	if r.View.Owner == "" {
		r.seen = contract.FDBInspection{}
		return nil
	}
	limit, attempts := requests.InspectTimeout, int32(requests.InspectAttempts)
	if r.ending() {
		r.deep, limit, attempts = false, 2*endingLimit, 1
	}
	seen, err := call.Execute(ctx, workflow.ActivityOptions{
		TaskQueue:              contract.FDBTaskQueue(r.In.Cluster),
		ScheduleToStartTimeout: requests.PickUp,
		StartToCloseTimeout:    limit,
		HeartbeatTimeout:       requests.Heartbeat,
		RetryPolicy:            &temporal.RetryPolicy{InitialInterval: call.RetryInterval, MaximumAttempts: attempts},
	}, contract.InspectFDBBackup, contract.FDBInspect{Ref: r.In.Ref, Deep: r.deep})
	if temporal.IsCanceledError(err) {
		return err
	}
	if err != nil {
		seen = contract.FDBInspection{Failure: requests.FailureOf(r.In.Cluster, err)}
	}
	if !r.deep && seen.Failure == nil {
		seen.Containers = r.seen.Containers // of the last deep inspection
	}
	r.seen, r.deep, r.deepened = seen, false, r.deep
	r.In.Memory = Notice(r.situation(), workflow.Now(ctx), r.limits(ctx).SnapshotTimeout)
	return nil
}

// operate runs what is due, one command after the other, and keeps the owner and the throttle up to date.
func (r *backupRun) operate(ctx workflow.Context) error {
	var last contract.FDBCommand
	for range requests.MaxCommandsInRow {
		if err := r.report(ctx); err != nil {
			return err
		}
		switch decision := Decide(r.situation()); decision.Step {
		case StepPlan:
			if trouble := Occupied(r.situation(), workflow.Now(ctx)); trouble != nil {
				r.failed = &Attempt{Operation: contract.FDBStart, Failure: trouble}
				return r.giveBack(ctx, trouble)
			}
			if err := r.plan(ctx); err != nil || !Planned(r.View) {
				r.postponed = true
				return err
			}
			if err := r.useNew(ctx, false); err != nil {
				return err
			}
		case StepCommand:
			if decision.Command == last {
				return nil // it has no visible effect yet; the next inspection will show it
			}
			last = decision.Command
			if goOn, err := r.command(ctx, decision.Command); err != nil || !goOn {
				return err
			}
		case StepSlot: // nothing until it is granted
			return nil
		default:
			r.failed = nil
			return nil
		}
	}
	return nil
}

// report brings the owner and the throttle up to date.
func (r *backupRun) report(ctx workflow.Context) error {
	if r.In.Memory.Owner != "" && r.In.Memory.Owner != r.View.Owner && r.View.Owner != "" {
		if err := r.leave(ctx); err != nil { // the cluster was recreated
			return err
		}
		r.news = true
	}
	if r.news && r.View.Owner != "" && !Stopping(r.View) {
		answer, err := r.request(ctx, contract.FDBCommandRequest{})
		if err != nil {
			return err
		}
		r.news = answer.Outcome != nil // it has not answered
	}
	if action := SlotAction(r.situation()); action != "" {
		return r.requestSlot(ctx, action)
	}
	return nil
}

func (r *backupRun) plan(ctx workflow.Context) error {
	return r.See(call.LocalFirst(ctx, r.Options.Limits, contract.PlanFDBBackup,
		contract.FDBPlan{Ref: r.In.Ref, Generation: r.View.Generation, At: workflow.Now(ctx).Unix()}))
}

// command runs a command through the owner, and reports whether the pass goes on.
func (r *backupRun) command(ctx workflow.Context, command contract.FDBCommand) (bool, error) {
	command.Ref, r.failed = r.In.Ref, nil
	r.In.Memory.Starting = command.Operation == contract.FDBStart
	answer, err := r.request(ctx, contract.FDBCommandRequest{Command: &command})
	if err != nil {
		return false, err
	}
	outcome := answer.Outcome
	switch {
	case answer.Later || outcome == nil:
		return false, r.putOff(ctx, command.Operation)
	case outcome.Failure != nil:
		r.failed = &Attempt{Operation: command.Operation, Failure: outcome.Failure}
		if command.Next != "" {
			r.failed.Operation = contract.FDBStart // the abort is its first half
		}
		return false, r.giveBack(ctx, outcome.Failure)
	case outcome.Stale:
		r.postponed = true
		return false, nil
	}
	switch command.Operation {
	case contract.FDBStart:
		if err := r.useNew(ctx, true); err != nil {
			return false, err
		}
	case contract.FDBPause:
		r.In.Memory.Paused = true
	case contract.FDBResume:
		r.In.Memory.Paused = false
	}
	r.deep = true
	return true, r.inspect(ctx)
}

// putOff handles a command that the owner did not run: others' commands took the time, or other backups want the opposite of the
// agents.
func (r *backupRun) putOff(ctx workflow.Context, operation contract.FDBOperation) error {
	r.In.Memory.Quiet = 0
	switch operation {
	case contract.FDBResume:
		if Stopping(r.View) {
			r.In.Memory.Paused = false // the members that stay want the pause
		}
	case contract.FDBStart, contract.FDBModify, contract.FDBAbort:
		trouble := &contract.FDBFailure{
			Class: contract.FDBClassOther, Message: "other backups' commands on the FoundationDB cluster have used up the time limit",
		}
		r.failed = &Attempt{Operation: operation, Failure: trouble}
		return r.giveBack(ctx, trouble)
	}
	return nil
}

// giveBack releases the slot of a start that has failed; this backup asks again before it retries. A start that was killed may
// have had an effect, which the next inspection shows. While a first snapshot is written the slot is kept, whatever fails.
func (r *backupRun) giveBack(ctx workflow.Context, trouble *contract.FDBFailure) error {
	granted := r.In.Memory.Slot == contract.FDBSlotGranted
	if !granted || trouble.Class == contract.FDBClassTimeout || r.situation().WritesFirstSnapshot() {
		return nil
	}
	return r.requestSlot(ctx, contract.FDBSlotRelease)
}
