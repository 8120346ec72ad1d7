package location

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/entity"
	"holdfast.dev/holdfast/workflows/kinds"
)

// Kind is how the workflow is run.
var Kind = kinds.Kind{
	Kind: contract.KindLocation,
	Activities: contract.Names(
		contract.RefreshLocation, contract.AdmitLocation, contract.SyncLocation, contract.WithdrawLocation, contract.DeleteLocation,
		contract.ReleaseLocation,
	),
	Read: contract.RefreshLocation.Name, Decisions: locationDecisions,
	Run: kinds.Serving(Workflow),
}

// Workflow serves one NonAdminBackupStorageLocation from its creation, or any later event, until it is settled; the next event
// starts it again under the same ID. It is the only writer of the object's status. It does not wait for administrators or
// Velero: what they do is an event.
func Workflow(ctx workflow.Context, in contract.ObjectInput, options call.Options) error {
	run := &locationRun{in: in, options: options, signals: workflow.GetSignalChannel(ctx, contract.SignalChanged)}
	err := workflow.SetQueryHandler(ctx, contract.QueryState, func() (contract.LocationState, error) {
		return contract.LocationState{View: run.view}, nil
	})
	if err != nil {
		return err
	}
	return entity.Serve(ctx, run)
}

// secretLag is the time for Velero to see a new Secret: far more than the events of a healthy API server take.
const secretLag = 500 * time.Millisecond

// longestInterval is the longest wait while another's finalizer holds an object.
const longestInterval = time.Minute

type locationRun struct {
	in      contract.ObjectInput
	options call.Options
	signals workflow.ReceiveChannel
	view    contract.LocationView
	// interval is the next wait; waited is the view at the last one.
	interval time.Duration
	waited   contract.LocationView
}

// locationStepsInRow limits the local activities of a pass: they all run again after a kill.
const locationStepsInRow = 4

// Pass implements entity.Object. Steps that repeat without a result wait for something else: the next pass reads it again. An
// entity.Course would go on with the next step after its pause, and histories have a reading there.
func (r *locationRun) Pass(ctx workflow.Context) (entity.Outcome, error) {
	step := stepRefreshLocation
	for range locationStepsInRow {
		view, err := call.LocalFirst(ctx, r.options.Limits, locationSteps.Activity(step), contract.LocationStep{Ref: r.in.Ref})
		if err != nil {
			return entity.Waiting, err
		}
		r.view = view
		if step = locationDecisions.Next(view); step.Activity == "" {
			break
		}
		if view.CopyMade {
			if err := workflow.Sleep(ctx, secretLag); err != nil {
				return entity.Waiting, err
			}
		}
	}
	return entity.OutcomeOf(step), r.show(ctx)
}

// Drain implements entity.Object.
func (r *locationRun) Drain() int { return entity.Drain(r.signals) }

// Carry implements entity.Object.
func (r *locationRun) Carry() any { return r.in }

func (r *locationRun) show(ctx workflow.Context) error {
	return entity.Show(ctx, &r.in, r.view.Phase, r.view.Velero.Phase)
}

// Wait implements entity.Object: a short pause, shorter than a signal takes to arrive. It grows while nothing changes: another
// holds an object, whose events are signals, and signals do not end this sleep.
func (r *locationRun) Wait(ctx workflow.Context) error {
	r.interval = min(2*r.interval, longestInterval)
	if r.view != r.waited {
		r.waited, r.interval = r.view, entity.Pause
	}
	workflow.SetCurrentDetails(ctx, locationDecisions.Awaited(r.view))
	return workflow.Sleep(ctx, r.interval)
}
