package restore

import (
	"fmt"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/details"
	"holdfast.dev/holdfast/workflows/entity"
)

// The steps of a NonAdminRestore.
var (
	restoreSteps entity.Steps[contract.RestoreStep, contract.RestoreView]

	stepRefreshRestore = restoreSteps.Act(contract.RefreshRestore)
	stepStartRestore   = restoreSteps.Act(contract.StartRestore)
	stepAdmitRestore   = restoreSteps.Act(contract.AdmitRestore)
	stepDeleteRestore  = restoreSteps.Act(contract.DeleteRestore)
	stepReleaseRestore = restoreSteps.Act(contract.ReleaseRestore)
	// stepFinalize: Velero has done its part, the finalization is a workflow of its own.
	stepFinalize = entity.Step{Summary: "finalize"}
)

var restoreDecisions = entity.Decisions[contract.RestoreView]{
	Next: nextRestoreStep, Settled: Settled, Awaited: awaitedOfRestore,
}

// nextRestoreStep decides by the order of precedence: a namespace that is being deleted, a deletion timestamp,
// create or update, and last the finalization.
func nextRestoreStep(v contract.RestoreView) entity.Step {
	switch {
	case Settled(v):
		return entity.Settle
	case v.BeingDeleted && (v.NamespaceTerminating || !v.Velero.Exists):
		return stepReleaseRestore
	case v.BeingDeleted && (!v.Marked || (!v.Velero.Deleting && !v.Velero.AtWork)):
		return stepDeleteRestore
	case v.BeingDeleted:
		return entity.Wait // for Velero to end the restore, or to remove its files
	case !v.EverCreated:
		return stepStartRestore
	case !v.SpecJudged, !v.Finalizer && v.Velero.Exists:
		return stepAdmitRestore
	case v.FinalizationDue && v.Velero.Exists:
		return stepFinalize
	}
	return entity.Wait // for Velero
}

// awaitedOfRestore says in Markdown what a restore waits for, and who must act.
func awaitedOfRestore(v contract.RestoreView) string {
	velero := fmt.Sprintf("Velero Restore `%s`", v.Velero.Name)
	switch {
	case v.BeingDeleted && v.Velero.AtWork && !v.Velero.Deleting:
		return fmt.Sprintf("**Deleting:** waits for Velero to end %s (phase: %s). Deleted before, it would hold up other restores.",
			velero, v.Velero.Phase)
	case v.BeingDeleted:
		return fmt.Sprintf("**Deleting:** waits for Velero to remove the files of %s from the object store (phase: %s). "+
			"It does so when it is running, its present restore is done and the storage location is available.",
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
	case v.BeingDeleted, !v.SpecJudged:
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
	return v.Finalizer && v.Velero.Finished && !v.FinalizationDue && v.Velero.Phase == v.Velero.MirroredPhase
}
