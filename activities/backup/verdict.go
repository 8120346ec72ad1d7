package backup

import (
	"context"
	"errors"
	"fmt"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/lifecycle"
	"holdfast.dev/holdfast/k8s/policy/backupspec"
	"holdfast.dev/holdfast/k8s/policy/check"
)

// Judge judges the present spec by the administrator's policy, the storage locations and the backups that the reader returns. A
// forged label gives the same answer for a name that is free as for one that is another tenant's. The policy and the location
// are left in o.Rules and o.StorageLocation.
func (g *Gatherer) Judge(ctx context.Context, o *Objects) (check.Verdict, error) {
	verdict, err := g.judge(ctx, o)
	if err != nil || verdict.Accepted || !o.unread {
		return verdict, err
	}
	// If somebody has removed the status and the finalizer there may be a Velero Backup nevertheless, whatever the spec is now.
	if err := g.findBackup(ctx, o); err != nil {
		return check.Verdict{}, err
	}
	return g.judge(ctx, o)
}

func (g *Gatherer) judge(ctx context.Context, o *Objects) (check.Verdict, error) {
	if o.Backup == nil && o.SyncedFrom != "" && o.SyncedFrom == o.BackupName {
		return check.Verdict{
			Reason: oadpv1alpha1.ReasonVeleroBackupNotFound,
			Message: fmt.Sprintf("%s: no Velero Backup named %q has NonAdminBackup %s/%s as its origin",
				oadpv1alpha1.MessageSyncedBackupNotFound, o.SyncedFrom, o.NAB.Namespace, o.NAB.Name),
		}, nil
	}
	if o.Foreign {
		return lifecycle.NotOwned(o.NAB, o.BackupName), nil
	}
	if o.Backup == nil && lifecycle.EverCreated(o.NAB) {
		return lifecycle.Absence(o.NAB), nil
	}
	if o.Backup != nil && o.SyncedFrom == o.BackupName {
		return lifecycle.Acceptance(o.NAB), nil // made from the Velero Backup's own spec, which was judged when it was created
	}
	rules, err := g.Policy.Get(ctx)
	if err != nil {
		return check.Verdict{}, fmt.Errorf("read the admin's policy: %w", err)
	}
	location, err := backupspec.Validate(ctx, g.Reader, g.OADPNamespace, o.NAB, rules)
	var invalid *check.InvalidSpecError
	if errors.As(err, &invalid) {
		return check.Verdict{Reason: oadpv1alpha1.ReasonInvalidBackupSpec, Message: invalid.Error()}, nil
	}
	if err != nil {
		return check.Verdict{}, fmt.Errorf("validate NonAdminBackup %s/%s: %w", o.NAB.Namespace, o.NAB.Name, err)
	}
	o.Rules, o.StorageLocation = &rules, location
	refused, err := g.judgeQuota(ctx, o, rules.Own)
	switch {
	case err != nil:
		return check.Verdict{}, err
	case refused != nil:
		return *refused, nil
	}
	return lifecycle.Acceptance(o.NAB), nil
}
