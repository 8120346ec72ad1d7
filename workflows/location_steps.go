package workflows

import (
	"holdfast.dev/holdfast/k8s/location"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/entity"
)

// The steps of a NonAdminBackupStorageLocation.
var (
	stepRefreshLocation  = entity.Step{Activity: contract.ActivityRefreshLocation, Summary: "Read the location and mirror Velero's status"}
	stepAdmitLocation    = entity.Step{Activity: contract.ActivityAdmitLocation, Summary: "Validate the spec and ask for approval"}
	stepSyncLocation     = entity.Step{Activity: contract.ActivitySyncLocation, Summary: "Copy the Secret and write the Velero BackupStorageLocation"}
	stepWithdrawLocation = entity.Step{Activity: contract.ActivityWithdrawLocation, Summary: "Remove the Velero BackupStorageLocation and the Secret"}
	stepDeleteLocation   = entity.Step{Activity: contract.ActivityDeleteLocation, Summary: "Delete all that was made for the location"}
	stepReleaseLocation  = entity.Step{Activity: contract.ActivityReleaseLocation, Summary: "Release the finalizer"}
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
