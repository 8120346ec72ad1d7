package drill

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/entity"
	"holdfast.dev/holdfast/workflows/kinds"
)

const (
	// longest is how long a drill waits at most without reading its objects, and running while it waits for backup or restore.
	longest = time.Minute
	running = 15 * time.Second
	// firstRetry is the wait after the target could not be cleared; it doubles up to longest.
	firstRetry = 2 * time.Second
	// enough doublings are as long as longest.
	enough = 6
	// reported is after how many attempts to clear the target the object says why.
	reported = 3
)

// Kind is how the workflow is run. It serves one FoundationDBDrill from its creation until its target is empty again, also if it
// is deleted meanwhile. It is the only writer of the object's status. What the tools have read is not handed over to the next
// run: it is read again, and the target is cleared again.
var Kind = kinds.Of(entity.Kind[*contract.ObjectInput, contract.FDBDrillStep, contract.FDBDrillView]{
	Kind: contract.KindFDBDrill, Read: contract.ObserveFDBDrill,
	Activities: contract.Names(
		contract.AdmitFDBDrill, contract.SurveyFDBDrill, contract.PlanFDBDrill, contract.StartFDBDrillRestore,
		contract.CheckFDBDrill, contract.ConcludeFDBDrill, contract.RemoveFDBDrillRestore, contract.EndFDBDrill,
	),
	Settled: Settled, Begin: begin,
	Next: next, Awaited: awaited,
	Phases: func(v contract.FDBDrillView) (string, string) { return v.Phase, "" },
	Waits: contract.FDBDrillView{
		Found: true, Phase: "Restoring", Held: true, Admitted: true, Version: 1, Reached: true,
		Restore: contract.FDBDrillRestoreView{Begun: true, Exists: true, Name: "d", State: "running"},
	},
})

type run = entity.Run[*contract.ObjectInput, contract.FDBDrillStep, contract.FDBDrillView]

// drillRun is what a run of this kind has besides.
type drillRun struct {
	*run
	// check is the result of the checks; nil before.
	check *contract.FDBDrillCheck
	// cancelled is the survey or check during which the drill was deleted; nil if there is none.
	cancelled workflow.Future
	// cleared: the owner has reported that the target is empty. uncleared says why it is not; empty before the next attempt.
	cleared   bool
	uncleared string
	// attempts counts those to clear the target.
	attempts int
}

func begin(_ workflow.Context, r *run) error {
	own := &drillRun{run: r}
	r.Do, r.Wait = own.do, own.wait
	return nil
}

func (r *drillRun) do(ctx workflow.Context, step activity) (view contract.FDBDrillView, err error) {
	in := contract.FDBDrillStep{Ref: r.In.Ref}
	switch step {
	case stepSurvey:
		view, err = r.survey(ctx, in)
	case stepCheck:
		view, err = r.compare(ctx, in)
	case stepClear:
		if err = r.clear(ctx); err == nil {
			view, err = r.observe(ctx)
		}
	default:
		if step == contract.ConcludeFDBDrill {
			in.Check = r.check
		}
		in.Cleared = step == contract.EndFDBDrill && r.cleared
		view, err = call.LocalFirst(ctx, r.Options.Limits, step, in)
	}
	if err != nil {
		return view, err
	}
	view.Checked, view.Cleared, view.Uncleared = r.check != nil, view.Cleared || r.cleared, r.uncleared
	return view, nil
}

func (r *drillRun) observe(ctx workflow.Context) (contract.FDBDrillView, error) {
	step := contract.FDBDrillStep{Ref: r.In.Ref}
	if r.attempts >= reported {
		step.Uncleared = r.uncleared
	}
	return call.LocalFirst(ctx, r.Options.Limits, contract.ObserveFDBDrill, step)
}

// wait waits until a signal comes or something is due without one.
func (r *drillRun) wait(ctx workflow.Context) error {
	err := r.BlockFor(ctx, r.wakeIn(workflow.Now(ctx)), func() {})
	r.uncleared = "" // try again
	return err
}

// wakeIn is how long nothing is due unless a signal comes.
func (r *drillRun) wakeIn(now time.Time) time.Duration {
	switch {
	case r.uncleared != "":
		return min(longest, firstRetry<<min(r.attempts, enough))
	case r.View.Concluded || r.View.BeingDeleted:
		return running
	}
	wait := running
	if left := time.Unix(r.View.Deadline, 0).Sub(now); left > 0 {
		wait = min(wait, left)
	}
	return max(wait, time.Second)
}
