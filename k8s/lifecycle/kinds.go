package lifecycle

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/k8s/shorten"
)

// Reasons of the Accepted condition that the OADP non-admin controller does not have.
const (
	// ReasonVeleroBackupRefused: the spec passed validation, but the Velero Backup could not be made from it. It stays
	// until the user edits the spec.
	ReasonVeleroBackupRefused  = "VeleroBackupRefused"
	ReasonVeleroRestoreRefused = "VeleroRestoreRefused"
	// ReasonVeleroBackupNotOwned: a Velero Backup of the required name exists and was made for something else.
	ReasonVeleroBackupNotOwned  = "VeleroBackupNotOwned"
	ReasonVeleroRestoreNotOwned = "VeleroRestoreNotOwned"
)

// kind are the words of a kind.
type kind struct {
	tenants, made string
	// accepted and absent are verdicts; absent is about a Velero object that was made and is gone.
	accepted, absent  check.Verdict
	refused, notOwned string
	// scheduled is the reason and message of condition Queued, stalled the message of VeleroStalled.
	scheduled check.Verdict
	stalled   string
}

var (
	backups = kind{
		tenants: oadpv1alpha1.KindNonAdminBackup, made: "Velero Backup",
		accepted: check.Verdict{
			Accepted: true, Reason: oadpv1alpha1.ReasonBackupAccepted, Message: oadpv1alpha1.MessageBackupAccepted,
		},
		absent: check.Verdict{
			Reason: oadpv1alpha1.ReasonVeleroBackupNotFound, Message: oadpv1alpha1.MessageVeleroBackupNotFound,
		},
		refused: ReasonVeleroBackupRefused, notOwned: ReasonVeleroBackupNotOwned,
		scheduled: check.Verdict{Reason: oadpv1alpha1.ReasonBackupScheduled, Message: oadpv1alpha1.MessageBackupScheduled},
		stalled:   oadpv1alpha1.MessageVeleroStalled,
	}
	restores = kind{
		tenants: oadpv1alpha1.KindNonAdminRestore, made: "Velero Restore",
		accepted: check.Verdict{
			Accepted: true, Reason: oadpv1alpha1.ReasonRestoreAccepted, Message: oadpv1alpha1.MessageRestoreAccepted,
		},
		absent: check.Verdict{
			Reason: oadpv1alpha1.ReasonVeleroRestoreNotFound, Message: oadpv1alpha1.MessageVeleroRestoreNotFound,
		},
		refused: ReasonVeleroRestoreRefused, notOwned: ReasonVeleroRestoreNotOwned,
		scheduled: check.Verdict{Reason: oadpv1alpha1.ReasonRestoreScheduled, Message: oadpv1alpha1.MessageRestoreScheduled},
		stalled:   oadpv1alpha1.MessageVeleroRestoreStalled,
	}
)

// record is a NonAdminBackup or NonAdminRestore, and what the statuses of both have.
type record struct {
	client.Object
	kind       *kind
	phase      *oadpv1alpha1.NonAdminPhase
	conditions *[]metav1.Condition
	queue      **oadpv1alpha1.QueueInfo
}

func of(object client.Object) record {
	if nar, is := object.(*oadpv1alpha1.NonAdminRestore); is {
		return record{nar, &restores, &nar.Status.Phase, &nar.Status.Conditions, &nar.Status.QueueInfo}
	}
	nab := object.(*oadpv1alpha1.NonAdminBackup)
	return record{nab, &backups, &nab.Status.Phase, &nab.Status.Conditions, &nab.Status.QueueInfo}
}

// Acceptance is the verdict on a valid spec.
func Acceptance(object client.Object) check.Verdict { return of(object).kind.accepted }

// Absence is the verdict if the Velero object was made and is gone.
func Absence(object client.Object) check.Verdict { return of(object).kind.absent }

// NotOwned is the verdict if a Velero object of the required name exists and was made for something else.
func NotOwned(object client.Object, name string) check.Verdict {
	kind := of(object).kind
	return check.Verdict{
		Reason: kind.notOwned,
		Message: fmt.Sprintf("a %s named %q exists and was not made for this %s; ask an administrator to remove it",
			kind.made, name, kind.tenants),
	}
}

const maxRefusalBytes = 1000

// Refusal is the verdict if the API server does not accept the Velero object made from a valid spec.
func Refusal(object client.Object, err error) check.Verdict {
	kind := of(object).kind
	return check.Verdict{
		Reason:  kind.refused,
		Message: shorten.Text(fmt.Sprintf("the %s could not be created from this spec: %v", kind.made, err), maxRefusalBytes),
	}
}
