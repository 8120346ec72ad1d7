package backup

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/entity"
	"holdfast.dev/holdfast/workflows/kinds"
	"holdfast.dev/holdfast/workflows/stall"
	"holdfast.dev/holdfast/workflows/turns"
)

// Kind is how the workflow is run. It serves one NonAdminBackup from its creation, or any later event, until it is settled; the
// next event starts it again under the same ID. It is the only writer of the object's status, except the queue position.
//
// An activity that fails is retried without a limit, unless a retry cannot succeed; an invalid spec is a condition on the
// object. Only a status that the API server calls invalid fails a run, which is visible in Temporal: the next event or resync
// starts another.
var Kind = kinds.Of(entity.Kind[*contract.BackupInput, contract.BackupStep, contract.BackupView]{
	Kind: contract.KindBackup, Read: contract.RefreshBackup,
	Activities: contract.Names(
		contract.StartBackup, contract.CheckVeleroStall, contract.AdmitBackup, contract.MarkBackupDeleting,
		contract.RequestDeletion, contract.WithdrawBackup, contract.DeleteVeleroObjects, contract.ReleaseBackup, contract.RecordDigests,
	),
	Settled: Settled, Next: next, Awaited: awaited, Begin: begin,
	Phases: func(v contract.BackupView) (string, string) { return v.Phase, v.Velero.Phase },
	Waits: contract.BackupView{
		Found: true, Phase: "Created", Finalizer: true, SpecValidated: true, Accepted: true, EverCreated: true,
		Velero: contract.VeleroBackupView{Exists: true, Name: "b", Phase: "InProgress", Running: true},
	},
})

type (
	run      = entity.Run[*contract.BackupInput, contract.BackupStep, contract.BackupView]
	activity = contract.Activity[contract.BackupStep, contract.BackupView]
)

// backupRun is what a run of this kind has besides.
type backupRun struct {
	*run
	turn  turns.Held
	retry *retryTimer
	// digests are being recorded; nil if not.
	digests *recording
}

// recording is an activity that reads an archive.
type recording struct {
	done workflow.Future
	stop workflow.CancelFunc
}

const (
	// digestsTimeout limits one attempt to read the archive, and digestsHeartbeat is how long it takes until the attempt is
	// repeated after its worker was killed. maxDigestsRetry is longer than usual, since an attempt reads a whole file.
	digestsTimeout   = 6 * time.Minute
	digestsHeartbeat = 10 * time.Second
	maxDigestsRetry  = 15 * time.Minute
)

// retryTimer runs until a refused deletion is requested again. Signals must not delay it, so it outlasts them.
type retryTimer struct {
	attempt int
	timer   workflow.Future
	stop    workflow.CancelFunc
	due     bool
}

func begin(_ workflow.Context, r *run) error {
	b := &backupRun{run: r, turn: turns.Of(contract.PoolBackups, r.In.ObjectInput, &r.In.Turn)}
	r.Do, r.Passed, r.Drain, r.Wait = b.do, b.settleTurn, b.drain, b.wait
	watch := stall.Watch(r.Options, contract.CheckVeleroStall, contract.BackupStep{Ref: r.In.Ref},
		func() bool { return r.View.Velero.Phase == stall.InProgress })
	r.Waiters = []entity.Waiter{watch, b.awaitRetry, b.awaitDigests}
	return nil
}

func (b *backupRun) do(ctx workflow.Context, step activity) (contract.BackupView, error) {
	in := contract.BackupStep{Ref: b.In.Ref, Volumes: b.In.Volumes, Turn: b.In.Turn.Remaining(workflow.Now(ctx))}
	if step == contract.RefreshBackup {
		in.Drill = b.In.Drill
	}
	if step == contract.RequestDeletion {
		in.Attempt = b.View.DeleteRequest.Attempt + 1
	}
	view, err := call.LocalFirst(ctx, b.Options.Limits, step, in)
	if err == nil && step == contract.RefreshBackup && in.Drill == b.In.Drill {
		b.In.Drill = "" // it is shown, or says nothing
	}
	if err == nil && view.TurnUsed {
		b.turn.Used()
	}
	return view, err
}

func (b *backupRun) settleTurn(ctx workflow.Context) error {
	return b.turn.Settle(ctx, b.Options.Limits, turns.Use{
		Unfinished: b.View.Velero.Exists && !b.View.Velero.Finished, Stalled: b.View.Velero.Stalled, Waits: b.View.AwaitsTurn,
	})
}

func (b *backupRun) drain() int {
	return entity.DrainNoting(b.Changed, func(changed contract.VeleroChanged) {
		b.In.Volumes = b.In.Volumes || changed.Volumes
		if changed.Drill != "" {
			b.In.Drill = changed.Drill
		}
		b.turn.Note(changed.Turn)
	})
}

// wait ends, too, when the deletion is to be requested of Velero again, and requests it.
func (b *backupRun) wait(ctx workflow.Context) error {
	if err := b.Block(ctx); err != nil || b.retry == nil || !b.retry.due {
		return err
	}
	b.retry = nil
	return b.Act(ctx, contract.RequestDeletion)
}

// awaitRetry is an entity.Waiter. It keeps a timer for the attempt that failed last, if another is to follow.
func (b *backupRun) awaitRetry(ctx workflow.Context, selector workflow.Selector) {
	delay := deletionRetryDelay(b.View)
	attempt := b.View.DeleteRequest.Attempt
	if b.retry != nil && (delay == 0 || b.retry.attempt != attempt) {
		b.retry.stop()
		b.retry = nil
	}
	if b.retry == nil && delay > 0 {
		timer, stop := workflow.WithCancel(ctx)
		b.retry = &retryTimer{attempt: attempt, timer: workflow.NewTimer(timer, delay), stop: stop}
	}
	if retry := b.retry; retry != nil {
		selector.AddFuture(retry.timer, func(workflow.Future) { retry.due = true })
	}
}

// awaitDigests is an entity.Waiter. While digests are due it has them recorded, and ends a wait when they are. Nothing waits for
// that, and who deletes the backup ends it: an archive may take minutes, and its object store may be away for hours.
func (b *backupRun) awaitDigests(ctx workflow.Context, selector workflow.Selector) {
	due := digestsDue(b.View)
	switch {
	case due && b.digests == nil:
		reading, stop := workflow.WithCancel(ctx)
		retry := call.Retry()
		retry.MaximumInterval = maxDigestsRetry
		b.digests = &recording{stop: stop, done: call.Start(reading, workflow.ActivityOptions{
			StartToCloseTimeout: digestsTimeout, HeartbeatTimeout: digestsHeartbeat, RetryPolicy: retry,
		}, contract.RecordDigests, contract.BackupStep{Ref: b.In.Ref})}
	case !due && b.digests != nil:
		b.digests.stop()
		b.digests = nil
	}
	if b.digests == nil {
		return
	}
	selector.AddFuture(b.digests.done, func(done workflow.Future) {
		err := done.Get(ctx, nil)
		if err == nil {
			b.digests = nil
			return
		}
		workflow.GetLogger(ctx).Warn("cannot record digests of the archive", "error", err)
		waiting, stop := workflow.WithCancel(ctx)
		b.digests = &recording{stop: stop, done: workflow.NewTimer(waiting, maxDigestsRetry)}
	})
}
