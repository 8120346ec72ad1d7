package location

import (
	"regexp"
	"strings"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/workflows/contract"
)

// The functions of this file change the status of a NonAdminBackupStorageLocation in memory and nothing else.

// ApplyVerdict writes the Accepted condition for the present generation and, for an accepted spec, the name of all objects that
// will be made for it.
func (o *Objects) ApplyVerdict(to *oadpv1alpha1.NonAdminBackupStorageLocation) {
	if o.Usable() && !o.Verdict.Accepted {
		return // the spec was accepted; another condition is about its Secret
	}
	status := metav1.ConditionFalse
	if o.Verdict.Accepted {
		status = metav1.ConditionTrue
		o.refer(to)
	}
	set(to, oadpv1alpha1.NonAdminConditionAccepted, status, oadpv1alpha1.ReasonBSLSpecValidation, o.Verdict.Message)
}

// ApplyDeleting announces the deletion.
func ApplyDeleting(to *oadpv1alpha1.NonAdminBackupStorageLocation) {
	to.Status.Phase = oadpv1alpha1.NonAdminPhaseDeleting
}

// ApplySecret records the result of copying the Secret.
func ApplySecret(to *oadpv1alpha1.NonAdminBackupStorageLocation, reason, message string) {
	set(to, oadpv1alpha1.NonAdminConditionSecretSynced, truth(reason != oadpv1alpha1.ReasonSecretSyncFailed), reason, message)
}

// ApplySynced records the result of writing the Velero BackupStorageLocation.
func ApplySynced(to *oadpv1alpha1.NonAdminBackupStorageLocation, reason, message string) {
	set(to, oadpv1alpha1.NonAdminConditionBackupStorageLocationSynced,
		truth(reason != oadpv1alpha1.ReasonBackupStorageLocationSyncError), reason, message)
}

// Show writes what follows from the objects as read: the approval's condition, Velero's status and the phase. It changes
// nothing in a status that is up to date.
func (o *Objects) Show(to *oadpv1alpha1.NonAdminBackupStorageLocation) {
	spec, approval := o.InForce()
	o.showApproval(to, approval, spec != nil)
	if o.Velero != nil {
		o.refer(to)
	} else if spec == nil {
		if o.Copy == nil {
			meta.RemoveStatusCondition(&to.Status.Conditions, string(oadpv1alpha1.NonAdminConditionSecretSynced))
		}
		meta.RemoveStatusCondition(&to.Status.Conditions, string(oadpv1alpha1.NonAdminConditionBackupStorageLocationSynced))
	}
	o.showSynced(to, spec)
	if made := to.Status.VeleroBackupStorageLocation; made != nil {
		made.Status = mirrored(made.Status, o.Velero)
	}
	to.Status.Phase = o.phase(to, approval)
}

// showSynced sets the condition if no write was made, or if the result of the write was lost.
func (o *Objects) showSynced(to *oadpv1alpha1.NonAdminBackupStorageLocation, spec *velerov1.BackupStorageLocationSpec) {
	problem := o.problem
	if spec == nil && !o.Verdict.Accepted && strings.HasPrefix(o.Verdict.Message, secretProblem) {
		problem = o.Verdict.Message
	}
	synced := func(kind oadpv1alpha1.NonAdminCondition) bool {
		return meta.IsStatusConditionTrue(to.Status.Conditions, string(kind))
	}
	reported := func(kind oadpv1alpha1.NonAdminCondition) bool {
		return meta.FindStatusCondition(to.Status.Conditions, string(kind)) != nil
	}
	switch {
	case problem != "" && o.Copy != nil:
		ApplySecret(to, oadpv1alpha1.ReasonSecretSyncFailed, KeptCopy(problem))
	case problem != "" && spec != nil:
		ApplySecret(to, oadpv1alpha1.ReasonSecretSyncFailed, missingCopy(problem))
	case o.seeing && spec != nil && o.copySynced(spec) && !synced(oadpv1alpha1.NonAdminConditionSecretSynced):
		if reported(oadpv1alpha1.NonAdminConditionSecretSynced) {
			ApplySecret(to, oadpv1alpha1.ReasonSecretUpdated, oadpv1alpha1.MessageSecretUpdated)
		} else {
			ApplySecret(to, oadpv1alpha1.ReasonSecretCreated, oadpv1alpha1.MessageSecretCreated)
		}
	}
	if spec == nil || synced(oadpv1alpha1.NonAdminConditionBackupStorageLocationSynced) || !o.VeleroSynced(o.NewVelero(spec)) {
		return
	}
	if reported(oadpv1alpha1.NonAdminConditionBackupStorageLocationSynced) {
		ApplySynced(to, oadpv1alpha1.ReasonBackupStorageLocationUpdated, oadpv1alpha1.MessageBSLUpdated)
	} else {
		ApplySynced(to, oadpv1alpha1.ReasonBackupStorageLocationCreated, oadpv1alpha1.MessageBSLCreated)
	}
}

// missingCopy says that the tenant's Secret cannot be copied, and that Velero has no credential for the location.
func missingCopy(problem string) string { return oadpv1alpha1.MessageSecretSyncFailed + ": " + problem }

// KeptCopy says that the tenant's Secret cannot be copied, and what that means.
func KeptCopy(problem string) string {
	return oadpv1alpha1.MessageSecretSyncFailed + ": " + problem + "; the copy made before stays in use"
}

// phase of a location that is not being deleted. Unlike a backup's it goes back: a location may become unusable.
func (o *Objects) phase(to *oadpv1alpha1.NonAdminBackupStorageLocation, approval contract.Approval) oadpv1alpha1.NonAdminPhase {
	accepted := meta.FindStatusCondition(to.Status.Conditions, string(oadpv1alpha1.NonAdminConditionAccepted))
	switch {
	case accepted == nil:
		return oadpv1alpha1.NonAdminPhaseNew
	case accepted.Status != metav1.ConditionTrue:
		return oadpv1alpha1.NonAdminPhaseBackingOff
	case approval == contract.ApprovalNotRequested, approval == contract.ApprovalPending, approval == contract.ApprovalRejected:
		return oadpv1alpha1.NonAdminPhaseBackingOff
	case o.Velero != nil:
		return oadpv1alpha1.NonAdminPhaseCreated
	}
	return oadpv1alpha1.NonAdminPhaseNew
}

func (o *Objects) showApproval(to *oadpv1alpha1.NonAdminBackupStorageLocation, approval contract.Approval, inForce bool) {
	approved, updated := oadpv1alpha1.NonAdminConditionClusterAdminApproved, oadpv1alpha1.NonAdminConditionSpecUpdateApproved
	switch approval {
	case contract.ApprovalNotRequired:
		set(to, approved, metav1.ConditionTrue, oadpv1alpha1.ReasonBSLSpecApproved, oadpv1alpha1.MessageBSLApprovalNotRequired)
	case contract.ApprovalApproved:
		set(to, approved, metav1.ConditionTrue, oadpv1alpha1.ReasonBSLSpecApproved, oadpv1alpha1.MessageBSLApproved)
	case contract.ApprovalNotRequested:
		// A pending spec can be decided. A decision about the spec before does not apply to it.
		meta.RemoveStatusCondition(&to.Status.Conditions, string(approved))
	case contract.ApprovalPending:
		set(to, approved, metav1.ConditionFalse, oadpv1alpha1.ReasonBSLSpecApprovalPending, oadpv1alpha1.MessageBSLApprovalPending)
	case contract.ApprovalRejected:
		set(to, approved, metav1.ConditionFalse, oadpv1alpha1.ReasonBSLSpecRejected, o.withReason(oadpv1alpha1.MessageBSLRejected))
	case contract.ApprovalUnknown:
		// An invalid spec needs no decision. The decision about the one before stays, unless nothing of it is in force.
		if o.Rules.RequireApproval() && !inForce && meta.IsStatusConditionTrue(to.Status.Conditions, string(approved)) {
			meta.RemoveStatusCondition(&to.Status.Conditions, string(approved))
		}
		return
	}
	if approval == contract.ApprovalRejected && inForce {
		set(to, updated, metav1.ConditionFalse, oadpv1alpha1.ReasonBSLSpecUpdateRejected, oadpv1alpha1.MessageBSLUpdateRejected)
		return
	}
	meta.RemoveStatusCondition(&to.Status.Conditions, string(updated))
}

// withReason adds the administrator's reason: the tenant must act on it.
func (o *Objects) withReason(message string) string {
	if last := o.Request.Status.LastDecision; last != nil && last.Reason != "" {
		return message + ": " + last.Reason
	}
	return message
}

// perRequest matches what an object store writes differently each time: the IDs of a request (S3, Azure), and Azure's clock.
var perRequest = regexp.MustCompile(`(?i)\b(?:x-ms-)?(?:request|host)-?id: ?[^,\n]*(?:, |\n|$)|\bTime:\S*\n?`)

// PlainMessage is Velero's message about a location, without the parts that differ from one attempt to the next.
func PlainMessage(status velerov1.BackupStorageLocationStatus) string {
	return perRequest.ReplaceAllString(status.Message, "")
}

// mirrored is the copy of Velero's status to show. Velero validates each location about once a minute; a new time alone is not
// copied.
func mirrored(
	shown *velerov1.BackupStorageLocationStatus, made *velerov1.BackupStorageLocation,
) *velerov1.BackupStorageLocationStatus {
	if made == nil {
		return nil
	}
	message := PlainMessage(made.Status)
	if shown != nil && shown.Phase == made.Status.Phase && shown.Message == message {
		return shown
	}
	status := made.Status.DeepCopy()
	status.Message = message
	return status
}

func (o *Objects) refer(to *oadpv1alpha1.NonAdminBackupStorageLocation) {
	made := to.Status.VeleroBackupStorageLocation
	if !owner.Claims(to, o.Name) {
		made = &oadpv1alpha1.VeleroBackupStorageLocation{}
		to.Status.VeleroBackupStorageLocation = made
	}
	made.NACUUID, made.Name, made.Namespace = o.Name, o.Name, o.OADPNamespace
}

func truth(is bool) metav1.ConditionStatus {
	if is {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

func set(
	to *oadpv1alpha1.NonAdminBackupStorageLocation, kind oadpv1alpha1.NonAdminCondition,
	status metav1.ConditionStatus, reason, message string,
) {
	meta.SetStatusCondition(&to.Status.Conditions, metav1.Condition{
		Type: string(kind), Status: status, ObservedGeneration: to.Generation, Reason: reason, Message: message,
	})
}
