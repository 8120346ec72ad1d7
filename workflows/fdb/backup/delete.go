package backup

import (
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/details"
	"holdfast.dev/holdfast/workflows/fdb/requests"
)

// endingLimit is how long a command may take for an object whose namespace is being deleted: it is tried once, and the object is
// released whatever the outcome.
const endingLimit = 30 * time.Second

// ending: the namespace is being deleted, and must not wait for this object.
func (r *backupRun) ending() bool {
	return r.View.BeingDeleted && r.View.NamespaceEnding && (r.View.Held || r.View.DeleteWanted)
}

// release releases an object whose backup has ended, or cannot be ended. If its data are to be deleted, it first removes only the
// finalizer for the backup.
func (r *backupRun) release(ctx workflow.Context) error {
	now := workflow.Now(ctx)
	due, abandoned := ReleaseDue(r.situation(), r.failed, now, r.limits(ctx).ResourceTimeout)
	r.In.Memory.UnreachableSince = requests.UnreachableSince(r.In.Memory.UnreachableSince, r.View.Owner, r.seen.Failure, now)
	if !due && r.ending() {
		due, abandoned = true, Abandoned(r.situation(), "it has not ended in time, and its namespace is being deleted")
	}
	if !due {
		r.In.Memory.Quiet++
		blocker := details.OneLine(Blocker(r.situation(), r.failed))
		workflow.SetCurrentDetails(ctx, "**Deleting:** the backup is to be stopped first. "+blocker)
		return nil
	}
	if Unnoticed(r.situation()) { // otherwise its data would count as somebody else's
		if err := r.publishData(ctx, "Record what was started"); err != nil {
			return err
		}
	}
	release := contract.FDBRelease{Abandoned: abandoned}
	switch {
	case r.ending(): // the owner and the throttle follow after the release
		return r.removeFinalizers(ctx, LeaveData(r.View), abandoned)
	case r.View.DeleteWanted && len(r.View.Backups) == 0:
		release = NothingToDelete()
	}
	if err := r.leaveAll(ctx); err != nil {
		return err
	}
	if release.Data {
		return r.removeFinalizers(ctx, release, abandoned)
	}
	release.Ref = r.In.Ref
	if err := r.See(call.LocalFirst(ctx, r.Options.Limits, contract.ReleaseFDBBackup, release)); err != nil {
		return err
	}
	r.postponed = r.View.DeleteWanted // a pause, and then the data
	return nil
}

// removeFinalizers removes all our finalizers.
func (r *backupRun) removeFinalizers(ctx workflow.Context, release contract.FDBRelease, abandoned string) error {
	release.Ref, release.Abandoned = r.In.Ref, abandoned
	for _, container := range Mentioned(r.View) {
		if !slices.Contains(r.In.Memory.Used, container) {
			r.In.Memory.Used = append(r.In.Memory.Used, container) // its guard must learn that this backup does not use it
		}
	}
	note := abandoned
	if r.View.DeleteWanted {
		note += " " + release.Note
	} else {
		release.DataKept = nil // the spec does not ask for their deletion
	}
	err := requests.ShowRelease(ctx, note, func() error {
		return r.See(call.LocalFirst(ctx, r.Options.Limits, contract.ReleaseFDBBackup, release))
	})
	if err != nil {
		return err
	}
	r.In.Memory.Result = nil
	return nil
}

// clear waits for the turn that deletes the data of an object whose backup has ended, and then releases the object. All of it
// follows from the object and the turn's result: if that is lost, the backup asks the queue again.
func (r *backupRun) clear(ctx workflow.Context) error {
	switch result := r.In.Memory.Result; {
	case r.ending():
		return r.removeFinalizers(ctx, LeaveData(r.View), "")
	case len(r.View.Backups) == 0:
		return r.removeFinalizers(ctx, NothingToDelete(), "")
	case result != nil && result.Job == contract.FDBJobDelete &&
		(result.Outcome == contract.FDBTurnDone || result.Outcome == contract.FDBTurnNothing):
		return r.removeFinalizers(ctx, Cleared(*result), "")
	case result != nil:
		if err := r.publishTurn(ctx); err != nil {
			return err
		}
		if len(r.View.Backups) == 0 { // the rest is deleted
			return r.removeFinalizers(ctx, Cleared(*result), "")
		}
	}
	r.In.Memory.Quiet++
	text := "**Deleting:** the backup has ended; its data are deleted in its turn in the queue of expirations."
	if last := r.View.Expiry; last != nil {
		text += " Last turn: " + last.Reason + ". " + details.OneLine(last.Message)
	}
	workflow.SetCurrentDetails(ctx, text)
	return nil
}

// leaveAll deregisters the backup: with the owner and the throttle, and with those of the queue and the guards that do not know
// yet.
func (r *backupRun) leaveAll(ctx workflow.Context) error {
	if !r.unanswered && r.Settled() {
		if err := r.reportData(ctx); err != nil {
			return err
		}
	}
	if r.In.Memory.Owner != "" {
		if err := r.leave(ctx); err != nil {
			return err
		}
	}
	if r.In.Memory.Slot == contract.FDBSlotNone {
		return nil
	}
	return r.requestSlot(ctx, contract.FDBSlotRelease)
}
