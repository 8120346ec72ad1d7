package restore

import (
	"context"
	"errors"
	"fmt"

	"holdfast.dev/holdfast/activities/backup"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/k8s/policy/restorespec"
	"holdfast.dev/holdfast/k8s/shorten"
)

// Verdict is the result of judging a spec, for the Accepted condition.
type Verdict = backup.Verdict

// Reasons of the Accepted condition that the OADP non-admin controller does not have.
const (
	// ReasonVeleroRestoreRefused: the spec passed validation, but the Velero Restore could not be made from it. It stays
	// until the user edits the spec.
	ReasonVeleroRestoreRefused = "VeleroRestoreRefused"
	// ReasonVeleroRestoreNotOwned: an object of the required name exists and was made for something else.
	ReasonVeleroRestoreNotOwned = "VeleroRestoreNotOwned"
)

// Judge judges the present spec by the administrator's policy and the objects of the backup that the reader returns. Both are
// left in o.
func (g *Gatherer) Judge(ctx context.Context, o *Objects) (Verdict, error) {
	if o.Foreign {
		return notOwned(o.RestoreName), nil
	}
	if o.Restore == nil && everCreated(o.NAR) {
		return absence(), nil
	}
	rules, err := g.Policy.Get(ctx)
	if err != nil {
		return Verdict{}, fmt.Errorf("read the admin's policy: %w", err)
	}
	source, err := g.readSource(ctx, o.NAR, rules)
	if err != nil {
		return Verdict{}, err
	}
	o.Rules, o.Source = &rules, source
	err = restorespec.Validate(o.NAR, source, rules)
	if err == nil && source.Tenants() && source.Allowlist != nil {
		o.modifier, err = NewModifier(o, g.OADPNamespace)
	}
	var invalid *check.InvalidSpecError
	if errors.As(err, &invalid) {
		return Verdict{Reason: oadpv1alpha1.ReasonInvalidRestoreSpec, Message: invalid.Error()}, nil
	}
	if err != nil {
		return Verdict{}, fmt.Errorf("validate NonAdminRestore %s/%s: %w", o.NAR.Namespace, o.NAR.Name, err)
	}
	return acceptance(), nil
}

func acceptance() Verdict {
	return Verdict{Accepted: true, Reason: oadpv1alpha1.ReasonRestoreAccepted, Message: oadpv1alpha1.MessageRestoreAccepted}
}

func absence() Verdict {
	return Verdict{Reason: oadpv1alpha1.ReasonVeleroRestoreNotFound, Message: oadpv1alpha1.MessageVeleroRestoreNotFound}
}

// notOwned is the verdict if a Velero Restore of the required name exists and was made for something else.
func notOwned(name string) Verdict {
	return Verdict{
		Reason: ReasonVeleroRestoreNotOwned,
		Message: fmt.Sprintf("a Velero Restore named %q exists and was not made for this NonAdminRestore; "+
			"ask an administrator to remove it", name),
	}
}

const maxRefusalBytes = 1000

// Refusal is the verdict if the API server does not accept the Velero Restore made from a valid spec.
func Refusal(err error) Verdict {
	return Verdict{
		Reason:  ReasonVeleroRestoreRefused,
		Message: shorten.Text(fmt.Sprintf("the Velero Restore could not be created from this spec: %v", err), maxRefusalBytes),
	}
}
