package location

import (
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/details"
)

// next decides by the order of precedence: a deletion, the verdict about the spec and its approval request, and what
// is made for the location.
func next(v contract.LocationView) contract.Activity[contract.ObjectStep, contract.LocationView] {
	switch {
	case !v.Found, v.BeingDeleted && (v.Remains > 0 || v.Phase != "Deleting"):
		return contract.DeleteLocation
	case v.BeingDeleted:
		return contract.ReleaseLocation
	case !v.SpecValidated, !v.Requested, !v.Finalizer && (v.Accepted || v.Velero.Exists):
		return contract.AdmitLocation
	case !v.Synced && !v.Kept && v.InForce:
		return contract.SyncLocation
	case !v.Synced && !v.Kept:
		return contract.WithdrawLocation
	}
	return contract.RefreshLocation // the status is behind
}

// awaited says in Markdown what a location waits for, and who must act.
func awaited(v contract.LocationView) string {
	if v.Held != "" {
		return "**Waiting** for others to remove their finalizers: " + details.OneLine(v.Held)
	}
	return "**Working:** " + next(v).Summary
}

// Settled reports whether nothing is left to do for a NonAdminBackupStorageLocation until somebody changes it or something
// that it depends on. The watcher starts no workflow for a settled object, and a workflow ends when its object is settled.
func Settled(v contract.LocationView) bool {
	switch {
	case v.Remains == 0 && (!v.Found || (v.BeingDeleted && !v.Finalizer)):
		return true
	case !v.Found, v.BeingDeleted, !v.SpecValidated, !v.Shown:
		return false
	case !v.Finalizer && (v.Accepted || v.Velero.Exists), !v.Requested:
		return false
	}
	return v.Synced || v.Kept
}
