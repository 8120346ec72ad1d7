package backup

import (
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"holdfast.dev/holdfast/k8s"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/kstatus"
	"holdfast.dev/holdfast/k8s/lifecycle"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/shorten"
	"holdfast.dev/holdfast/k8s/velero"
	"holdfast.dev/holdfast/workflows/contract"
)

// View reduces the objects to the facts that decide the next step. now matters only for the age of delete requests.
func (o *Objects) View(now time.Time) contract.BackupView {
	if o.NAB == nil {
		return contract.BackupView{}
	}
	status := &o.NAB.Status
	accepted := lifecycle.Accepted(o.NAB)
	view := contract.BackupView{
		Found:                true,
		Phase:                string(status.Phase),
		DeleteBackup:         o.NAB.Spec.DeleteBackup,
		ForceDelete:          o.NAB.Spec.ForceDeleteBackup,
		BeingDeleted:         !o.NAB.DeletionTimestamp.IsZero(),
		NamespaceTerminating: o.NamespaceTerminating,
		LocationGone:         o.LocationGone,
		Finalizer:            controllerutil.ContainsFinalizer(o.NAB, oadpv1alpha1.NabFinalizer),
		Marked:               mark(o.NAB),
		SpecValidated:        lifecycle.SpecValidated(o.NAB, o.Backup != nil, o.Verdict) && kstatus.Consistent(o.NAB),
		Accepted:             accepted != nil && accepted.Status == metav1.ConditionTrue,
		EverCreated:          lifecycle.EverCreated(o.NAB),
		AbsenceReported:      lifecycle.AbsenceReported(o.NAB),
		AwaitsTurn:           o.waits() && !o.DeletionRequested(),
		TurnUsed:             o.turnUsed,
		VerdictDue:           o.drill != nil,
		Velero:               o.veleroView(),
		DeleteRequest:        o.deleteRequestView(now),
	}
	return view
}

// mark is the announcement of a deletion in the status, if it is about the present generation: the spec then says which
// deletion.
func mark(nab *oadpv1alpha1.NonAdminBackup) contract.DeletionMark {
	deleting := meta.FindStatusCondition(nab.Status.Conditions, string(oadpv1alpha1.NonAdminConditionDeleting))
	switch {
	case deleting == nil, nab.Status.Phase != oadpv1alpha1.NonAdminPhaseDeleting, deleting.ObservedGeneration != nab.Generation:
		return contract.MarkNone
	case nab.Spec.DeleteBackup || nab.Spec.ForceDeleteBackup:
		return contract.MarkAccepted
	}
	return contract.MarkPending
}

func (o *Objects) veleroView() contract.VeleroBackupView {
	view := contract.VeleroBackupView{Name: o.BackupName}
	if recorded := o.NAB.Status.VeleroBackup; recorded != nil && recorded.Status != nil && owner.Claims(o.NAB, o.BackupName) {
		view.MirroredPhase = string(recorded.Status.Phase)
	}
	if o.Backup == nil {
		return view
	}
	view.Exists = true
	view.Phase = string(o.Backup.Status.Phase)
	view.Finished = velero.Finished(o.Backup.Status.Phase)
	view.Running = velero.Running(o.Backup.Status.Phase)
	view.Unstarted = velero.Unstarted(&o.Backup.Status)
	view.DigestsDue = DigestsDue(o.Backup)
	view.Stalled = k8s.Stalled(o.NAB.Status.Conditions)
	if progress := o.Backup.Status.Progress; progress != nil {
		view.ItemsBackedUp, view.TotalItems = progress.ItemsBackedUp, progress.TotalItems
	}
	return view
}

func (o *Objects) deleteRequestView(now time.Time) contract.DeleteRequestView {
	var view contract.DeleteRequestView
	if recorded := o.NAB.Status.VeleroDeleteBackupRequest; recorded != nil {
		view.Attempt = velero.RequestAttempt(o.BackupName, recorded.Name)
	}
	newest := velero.NewestDeleteRequest(o.DeleteRequests, o.NAB, o.BackupName)
	if newest == nil {
		return view
	}
	if attempt := velero.RequestAttempt(o.BackupName, newest.Name); attempt >= view.Attempt {
		view.Attempt, view.Exists = attempt, true
		view.Failed = velero.DeletionFailed(newest, now)
		if len(newest.Status.Errors) > 0 {
			view.Error = shorten.Text(newest.Status.Errors[0], velero.MaxErrorBytes)
		}
	}
	return view
}

// DigestsDue reports whether digests of the objects in a complete Velero Backup are still to be recorded.
func DigestsDue(made *velerov1.Backup) bool {
	complete := made.Status.Phase == velerov1.BackupPhaseCompleted || made.Status.Phase == velerov1.BackupPhasePartiallyFailed
	return complete && made.Annotations[holdfastv1alpha1.AnnotationDigests] == holdfastv1alpha1.DigestsDue
}
