package workflows

import (
	"holdfast.dev/holdfast/k8s/location"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/entity"
)

// The steps of a NonAdminBackupStorageLocation.
var (
	stepRefreshLocation  = entity.Act(contract.ActivityRefreshLocation, "Read the location and mirror Velero's status")
	stepAdmitLocation    = entity.Act(contract.ActivityAdmitLocation, "Validate the spec and ask for approval")
	stepSyncLocation     = entity.Act(contract.ActivitySyncLocation, "Copy the Secret and write the Velero BackupStorageLocation")
	stepWithdrawLocation = entity.Act(contract.ActivityWithdrawLocation, "Remove the Velero BackupStorageLocation and the Secret")
	stepDeleteLocation   = entity.Act(contract.ActivityDeleteLocation, "Delete all that was made for the location")
	stepReleaseLocation  = entity.Act(contract.ActivityReleaseLocation, "Release the finalizer")
)

// nextLocationStep is the flow chart of seed 001.
func nextLocationStep(v contract.LocationView) entity.Step {
	switch {
	case location.Settled(v):
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
