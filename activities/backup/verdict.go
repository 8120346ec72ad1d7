package backup

import (
	"context"
	"errors"
	"fmt"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/policy/backupspec"
	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/k8s/shorten"
)

// Verdict is the result of judging a spec, for the Accepted condition.
type Verdict struct {
	Accepted bool
	Reason   string
	Message  string
}

// Reasons of the Accepted condition that the OADP non-admin controller does not have.
const (
	// ReasonVeleroBackupRefused: the spec passed validation, but the Velero Backup could not be made from it. It stays
	// until the user edits the spec.
	ReasonVeleroBackupRefused = "VeleroBackupRefused"
	// ReasonVeleroBackupNotOwned: a Velero Backup of the required name exists and was made for something else.
	ReasonVeleroBackupNotOwned = "VeleroBackupNotOwned"
)

// Judge judges the present spec by the administrator's policy, the storage locations and the backups that the reader returns. A
// forged label gives the same answer for a name that is free as for one that is another tenant's. The policy and the location
// are left in o.Rules and o.StorageLocation.
func (g *Gatherer) Judge(ctx context.Context, o *Objects) (Verdict, error) {
	verdict, err := g.judge(ctx, o)
	if err != nil || verdict.Accepted || !o.unread {
		return verdict, err
	}
	// If somebody has removed the status and the finalizer there may be a Velero Backup nevertheless, whatever the spec is now.
	if err := g.findBackup(ctx, o); err != nil {
		return Verdict{}, err
	}
	return g.judge(ctx, o)
}

func (g *Gatherer) judge(ctx context.Context, o *Objects) (Verdict, error) {
	if o.Backup == nil && o.SyncedFrom != "" && o.SyncedFrom == o.BackupName {
		return Verdict{
			Reason: oadpv1alpha1.ReasonVeleroBackupNotFound,
			Message: fmt.Sprintf("%s: no Velero Backup named %q has NonAdminBackup %s/%s as its origin",
				oadpv1alpha1.MessageSyncedBackupNotFound, o.SyncedFrom, o.NAB.Namespace, o.NAB.Name),
		}, nil
	}
	if o.Foreign {
		return Verdict{
			Reason: ReasonVeleroBackupNotOwned,
			Message: fmt.Sprintf("a Velero Backup named %q exists and was not made for this NonAdminBackup; "+
				"ask an administrator to remove it", o.BackupName),
		}, nil
	}
	if o.Backup == nil && everCreated(o.NAB) {
		return absence(), nil
	}
	if o.Backup != nil && o.SyncedFrom == o.BackupName {
		return acceptance(), nil // made from the Velero Backup's own spec, which was judged when it was created
	}
	rules, err := g.Policy.Get(ctx)
	if err != nil {
		return Verdict{}, fmt.Errorf("read the admin's policy: %w", err)
	}
	location, err := backupspec.Validate(ctx, g.Reader, g.OADPNamespace, o.NAB, rules)
	var invalid *check.InvalidSpecError
	if errors.As(err, &invalid) {
		return Verdict{Reason: oadpv1alpha1.ReasonInvalidBackupSpec, Message: invalid.Error()}, nil
	}
	if err != nil {
		return Verdict{}, fmt.Errorf("validate NonAdminBackup %s/%s: %w", o.NAB.Namespace, o.NAB.Name, err)
	}
	o.Rules, o.StorageLocation = &rules, location
	if refused, err := g.judgeQuota(ctx, o, rules.Own); err != nil || refused != nil {
		return orNone(refused), err
	}
	return acceptance(), nil
}

func orNone(verdict *Verdict) Verdict {
	if verdict == nil {
		return Verdict{}
	}
	return *verdict
}

func acceptance() Verdict {
	return Verdict{Accepted: true, Reason: oadpv1alpha1.ReasonBackupAccepted, Message: oadpv1alpha1.MessageBackupAccepted}
}

func absence() Verdict {
	return Verdict{Reason: oadpv1alpha1.ReasonVeleroBackupNotFound, Message: oadpv1alpha1.MessageVeleroBackupNotFound}
}

const maxRefusalBytes = 1000

// Refusal is the verdict if the API server does not accept the Velero Backup made from a valid spec.
func Refusal(err error) Verdict {
	return Verdict{
		Reason:  ReasonVeleroBackupRefused,
		Message: shorten.Text(fmt.Sprintf("the Velero Backup could not be created from this spec: %v", err), maxRefusalBytes),
	}
}
