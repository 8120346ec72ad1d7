package restore

import (
	"holdfast.dev/holdfast/activities"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/metrics"
	"holdfast.dev/holdfast/k8s/velero"
	"holdfast.dev/holdfast/workflows/contract"
)

func (r *Activities) recorder() activities.Recorder {
	return activities.Recorder{Cluster: r.Cluster, Noun: "Restore", Metrics: metrics.Restores}
}

// recordTurn measures how long the object has waited for the turn with which its Velero Restore was made.
func (r *Activities) recordTurn(o *Objects) {
	if o.Rules.Queue.MaxActiveRestores > 0 {
		metrics.TurnUsed(activities.TurnLane(contract.PoolRestores, contract.LaneHand), o.NAR.CreationTimestamp.Time)
	}
}

func (r *Activities) recordReleased(o *Objects) {
	note := "nothing is left of the restore; what it restored stays"
	if o.NamespaceTerminating {
		note = "the namespace is being deleted; Velero removes what is left of the restore"
	}
	r.recorder().Released(o.NAR, note)
}

// recordProgress writes Events for what Refresh changed that tenants need to know: the end of Velero's part, or its loss.
func (r *Activities) recordProgress(nar *oadpv1alpha1.NonAdminRestore, before contract.RestoreView, o *Objects) {
	after := o.View()
	if after.AbsenceReported && !before.AbsenceReported {
		r.recorder().Gone(nar)
		return
	}
	if o.Restore == nil || before.Velero.MirroredPhase == after.Velero.MirroredPhase || !after.Velero.Finished {
		return
	}
	status := &o.Restore.Status
	if status.CompletionTimestamp != nil {
		metrics.Restores.Mirrored(status.CompletionTimestamp.Time)
	}
	if o.Adopted || !velero.Usable(status.Phase) { // else its finalization is the end
		metrics.Restores.Finished(string(status.Phase), nar.CreationTimestamp.Time)
	}
	r.recorder().Ended(nar, activities.Ended{
		Phase: string(status.Phase), Errors: status.Errors, Warnings: status.Warnings,
		FailureReason: status.FailureReason, ValidationErrors: status.ValidationErrors,
		Cancelled: "what it had restored stays, and nothing follows",
	})
}
