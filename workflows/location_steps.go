package workflows

import (
	"holdfast.dev/holdfast/k8s/location"
	"holdfast.dev/holdfast/workflows/contract"
)

// locationStep is what a NonAdminBackupStorageLocation needs next: an activity's name, stepWait or stepSettled.
type locationStep = backupStep

const (
	stepRefreshLocation  locationStep = contract.ActivityRefreshLocation
	stepAdmitLocation    locationStep = contract.ActivityAdmitLocation
	stepSyncLocation     locationStep = contract.ActivitySyncLocation
	stepWithdrawLocation locationStep = contract.ActivityWithdrawLocation
	stepDeleteLocation   locationStep = contract.ActivityDeleteLocation
	stepReleaseLocation  locationStep = contract.ActivityReleaseLocation
)

var locationSummaries = map[locationStep]string{
	stepRefreshLocation:  "Read the location and mirror Velero's status",
	stepAdmitLocation:    "Validate the spec and ask for approval",
	stepSyncLocation:     "Copy the Secret and write the Velero BackupStorageLocation",
	stepWithdrawLocation: "Remove the Velero BackupStorageLocation and the Secret",
	stepDeleteLocation:   "Delete all that was made for the location",
	stepReleaseLocation:  "Release the finalizer",
}

// nextLocationStep is the flow chart of seed 001.
func nextLocationStep(v contract.LocationView) locationStep {
	switch {
	case location.Settled(v):
		return stepSettled
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
