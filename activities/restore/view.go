package restore

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/kstatus"
	"holdfast.dev/holdfast/k8s/lifecycle"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/velero"
	"holdfast.dev/holdfast/workflows/contract"
)

// View reduces the objects to the facts that decide the next step.
func (o *Objects) View() contract.RestoreView {
	if o.NAR == nil {
		return contract.RestoreView{}
	}
	status := &o.NAR.Status
	accepted := lifecycle.Accepted(o.NAR)
	return contract.RestoreView{
		Found:                true,
		Phase:                string(status.Phase),
		BeingDeleted:         !o.NAR.DeletionTimestamp.IsZero(),
		NamespaceTerminating: o.NamespaceTerminating,
		Finalizer:            controllerutil.ContainsFinalizer(o.NAR, oadpv1alpha1.NarFinalizer),
		Marked: status.Phase == oadpv1alpha1.NonAdminPhaseDeleting &&
			meta.IsStatusConditionTrue(status.Conditions, string(oadpv1alpha1.NonAdminConditionDeleting)),
		SpecValidated:   lifecycle.SpecValidated(o.NAR, o.Restore != nil, o.Verdict) && kstatus.Consistent(o.NAR),
		Accepted:        accepted != nil && accepted.Status == metav1.ConditionTrue,
		EverCreated:     lifecycle.EverCreated(o.NAR),
		AbsenceReported: lifecycle.AbsenceReported(o.NAR),
		AwaitsTurn:      o.waits(),
		TurnUsed:        o.turnUsed,
		FinalizationDue: o.finalizationDue(),
		Velero:          o.veleroView(),
	}
}

// finalizationDue: Velero has restored what it could, and the finalization has not ended. Restores from before Holdfast's
// installation are left as they are.
func (o *Objects) finalizationDue() bool {
	return o.Restore != nil && velero.Usable(o.Restore.Status.Phase) && !o.Adopted && lifecycle.FinalPhase(o.NAR) == ""
}

func (o *Objects) veleroView() contract.VeleroRestoreView {
	view := contract.VeleroRestoreView{Name: o.RestoreName}
	if recorded := o.NAR.Status.VeleroRestore; recorded != nil && recorded.Status != nil && owner.Claims(o.NAR, o.RestoreName) {
		view.MirroredPhase = string(recorded.Status.Phase)
	}
	if o.Restore == nil {
		return view
	}
	view.Exists = true
	view.Phase = string(o.Restore.Status.Phase)
	view.Finished = velero.Finished(o.Restore.Status.Phase)
	view.Deleting = !o.Restore.DeletionTimestamp.IsZero()
	view.Stalled = k8s.Stalled(o.NAR.Status.Conditions)
	view.AtWork = velero.Writing(o.Restore.Status.Phase) && !view.Stalled
	if progress := o.Restore.Status.Progress; progress != nil {
		view.ItemsRestored, view.TotalItems = progress.ItemsRestored, progress.TotalItems
	}
	return view
}
