package restore

import (
	"fmt"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/details"
)

// wait: nothing is due.
var wait activity

// next decides by the order of precedence: a namespace that is being deleted, a deletion timestamp,
// create or update.
func next(v contract.RestoreView) activity {
	switch {
	case v.BeingDeleted && (v.NamespaceTerminating || !v.Velero.Exists):
		return contract.ReleaseRestore
	case v.BeingDeleted && (!v.Marked || (!v.Velero.Deleting && !v.Velero.AtWork)):
		return contract.DeleteRestore
	case v.BeingDeleted:
		return wait // for Velero to end the restore, or to remove its files
	case !v.EverCreated:
		return contract.StartRestore
	case !v.SpecValidated, !v.Finalizer && v.Velero.Exists:
		return contract.AdmitRestore
	}
	return wait // for Velero, or for the finalization
}

// finalizationDue reports whether a restore that waits does so for the finalization: Velero has done its part.
func finalizationDue(v contract.RestoreView) bool {
	return v.FinalizationDue && v.Velero.Exists && !v.BeingDeleted
}

// awaited says in Markdown what a restore waits for, and who must act.
func awaited(v contract.RestoreView) string {
	velero := fmt.Sprintf("Velero Restore `%s`", v.Velero.Name)
	switch {
	case v.BeingDeleted && v.Velero.AtWork && !v.Velero.Deleting:
		return fmt.Sprintf("**Deleting:** waits for Velero to end %s (phase: %s). Deleting it earlier would hold up other restores.",
			velero, v.Velero.Phase)
	case v.BeingDeleted:
		return fmt.Sprintf("**Deleting:** waits for Velero to remove the files of %s from the object store (phase: %s). "+
			"Velero does so once it runs, has ended its current restore, and the storage location is available.",
			velero, details.OrUnknown(v.Velero.Phase))
	case v.Velero.Stalled:
		return fmt.Sprintf("**Stalled:** the object store holds the results of %s, and Velero still calls it %s. "+
			"An administrator should restart Velero.", velero, v.Velero.Phase)
	case v.Velero.Phase == "", v.Velero.Phase == "New":
		return fmt.Sprintf("**Queued:** waits for Velero to start %s.", velero)
	case v.Velero.TotalItems > 0:
		return fmt.Sprintf("**%s:** Velero has restored %d of %d items of %s.",
			v.Velero.Phase, v.Velero.ItemsRestored, v.Velero.TotalItems, velero)
	}
	return fmt.Sprintf("**%s:** Velero works on %s.", v.Velero.Phase, velero)
}

// Settled reports whether nothing is left to do for a NonAdminRestore until somebody changes it, its Velero Restore or,
// in BackingOff, something its verdict depends on. The watcher starts no workflow for a settled object, and a workflow
// ends when its object is settled.
func Settled(v contract.RestoreView) bool {
	switch {
	case !v.Found, v.BeingDeleted && !v.Finalizer:
		return true
	case v.BeingDeleted, !v.SpecValidated:
		return false
	case v.Phase == string(oadpv1alpha1.NonAdminPhaseBackingOff) && !v.Accepted:
		return true // left directly for Created, so an accepted spec is still BackingOff for a moment
	case v.AwaitsTurn:
		return true // the queue before Velero starts a workflow when it has its turn
	case !v.EverCreated:
		return false
	case !v.Velero.Exists:
		return v.AbsenceReported
	}
	return v.Finalizer && v.Velero.Finished && !v.FinalizationDue && mirrored(v)
}

// mirrored reports whether the status repeats Velero's phase.
func mirrored(v contract.RestoreView) bool { return v.Velero.Phase == v.Velero.MirroredPhase }

// AwaitsVelero reports whether the workflow has done all that it can until Velero goes on, or the finalization ends, and the
// status repeats Velero's phase.
func AwaitsVelero(v contract.RestoreView) bool {
	return v.Velero.Exists && mirrored(v) && !v.BeingDeleted && next(v) == wait
}
