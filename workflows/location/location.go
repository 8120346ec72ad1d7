package location

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/entity"
	"holdfast.dev/holdfast/workflows/kinds"
)

// Kind is how the workflow is run. It serves one NonAdminBackupStorageLocation from its creation, or any later event, until it is
// settled; the next event starts it again under the same ID. It is the only writer of the object's status. It does not wait for
// administrators or Velero: what they do is an event.
var Kind = kinds.Of(entity.Kind[*contract.ObjectInput, contract.ObjectStep, contract.LocationView]{
	Kind: contract.KindLocation, Read: contract.RefreshLocation,
	Activities: contract.Names(
		contract.AdmitLocation, contract.SyncLocation, contract.WithdrawLocation, contract.DeleteLocation, contract.ReleaseLocation,
	),
	Args:    (*contract.ObjectInput).Step,
	Settled: Settled, Next: next, Awaited: awaited, Begin: begin,
	Phases: func(v contract.LocationView) (string, string) { return v.Phase, v.Velero.Phase },
	Waits:  contract.LocationView{Found: true, BeingDeleted: true, Phase: "Deleting", Remains: 1, Held: "a Secret"},
})

type run = entity.Run[*contract.ObjectInput, contract.ObjectStep, contract.LocationView]

const (
	// secretLag is the time for Velero to see a new Secret: far more than the events of a healthy API server take.
	secretLag = 500 * time.Millisecond
	// longestInterval is the longest wait while another's finalizer holds an object.
	longestInterval = time.Minute
	// locationStepsInRow limits the local activities of a pass: they all run again after a kill.
	locationStepsInRow = 4
)

func begin(_ workflow.Context, r *run) error {
	r.Pass = func(ctx workflow.Context) (bool, error) { return pass(ctx, r) }
	interval, waited := time.Duration(0), contract.LocationView{}
	// A short pause, shorter than a signal takes to arrive. It grows while nothing changes: another holds an object, whose events
	// are signals, and signals do not end this sleep.
	r.Wait = func(ctx workflow.Context) error {
		interval = min(2*interval, longestInterval)
		if r.View != waited {
			waited, interval = r.View, entity.Pause
		}
		workflow.SetCurrentDetails(ctx, awaited(r.View))
		return workflow.Sleep(ctx, interval)
	}
	return nil
}

// pass takes steps that repeat without a result no more often than that: they wait for something else, and the next pass reads it
// again. The pass of all kinds would go on with the next step after its pause, and histories have a reading there.
func pass(ctx workflow.Context, r *run) (settled bool, err error) {
	step, due := contract.RefreshLocation, true
	for taken := 0; due && taken < locationStepsInRow; taken++ {
		if err := r.Act(ctx, step); err != nil {
			return false, err
		}
		if step, due = r.Due(); due && r.View.CopyMade {
			if err := workflow.Sleep(ctx, secretLag); err != nil {
				return false, err
			}
		}
	}
	return r.Settled(), r.Show(ctx)
}
