package location

import (
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/details"
	"holdfast.dev/holdfast/workflows/entity"
)

// The steps of a NonAdminBackupStorageLocation.
var (
	locationSteps entity.Steps[contract.LocationStep, contract.LocationView]

	stepRefreshLocation  = locationSteps.Act(contract.RefreshLocation)
	stepAdmitLocation    = locationSteps.Act(contract.AdmitLocation)
	stepSyncLocation     = locationSteps.Act(contract.SyncLocation)
	stepWithdrawLocation = locationSteps.Act(contract.WithdrawLocation)
	stepDeleteLocation   = locationSteps.Act(contract.DeleteLocation)
	stepReleaseLocation  = locationSteps.Act(contract.ReleaseLocation)
)

var locationDecisions = entity.Decisions[contract.LocationView]{
	Next: nextLocationStep, Settled: Settled, Awaited: awaitedOfLocation,
}

// nextLocationStep decides by the order of precedence: a deletion, the verdict about the spec and its approval request, and what
// is made for the location.
func nextLocationStep(v contract.LocationView) entity.Step {
	switch {
	case Settled(v):
		return entity.Settle
	case !v.Found, v.BeingDeleted && (v.Remains > 0 || v.Phase != "Deleting"):
		return stepDeleteLocation
	case v.BeingDeleted:
		return stepReleaseLocation
	case !v.SpecJudged, !v.Requested, !v.Finalizer && (v.Accepted || v.Velero.Exists):
		return stepAdmitLocation
	case !v.Synced && !v.Kept && v.InForce:
		return stepSyncLocation
	case !v.Synced && !v.Kept:
		return stepWithdrawLocation
	}
	return stepRefreshLocation // the status is behind
}

// awaitedOfLocation says in Markdown what a location waits for, and who must act.
func awaitedOfLocation(v contract.LocationView) string {
	if v.Held != "" {
		return "**Waiting** for others to remove their finalizers: " + details.OneLine(v.Held)
	}
	return "**Working:** " + nextLocationStep(v).Summary
}

// Settled reports whether nothing is left to do for a NonAdminBackupStorageLocation until somebody changes it or something
// that it depends on. The watcher starts no workflow for a settled object, and a workflow ends when its object is settled.
func Settled(v contract.LocationView) bool {
	switch {
	case v.Remains == 0 && (!v.Found || (v.BeingDeleted && !v.Finalizer)):
		return true
	case !v.Found, v.BeingDeleted, !v.SpecJudged, !v.Shown:
		return false
	case !v.Finalizer && (v.Accepted || v.Velero.Exists), !v.Requested:
		return false
	}
	return v.Synced || v.Kept
}
