package restore

import (
	"context"
	"errors"
	"fmt"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/lifecycle"
	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/k8s/policy/restorespec"
)

// Judge judges the present spec by the administrator's policy and the objects of the backup that the reader returns. Both are
// left in o.
func (g *Gatherer) Judge(ctx context.Context, o *Objects) (check.Verdict, error) {
	if o.Foreign {
		return lifecycle.NotOwned(o.NAR, o.RestoreName), nil
	}
	if o.Restore == nil && lifecycle.EverCreated(o.NAR) {
		return lifecycle.Absence(o.NAR), nil
	}
	rules, err := g.Policy.Get(ctx)
	if err != nil {
		return check.Verdict{}, fmt.Errorf("read the admin's policy: %w", err)
	}
	source, err := g.readSource(ctx, o.NAR, rules)
	if err != nil {
		return check.Verdict{}, err
	}
	o.Rules, o.Source = &rules, source
	err = restorespec.Validate(o.NAR, source, rules)
	if err == nil && source.Tenants() && source.Allowlist != nil {
		o.modifier, err = NewModifier(o, g.OADPNamespace)
	}
	var invalid *check.InvalidSpecError
	if errors.As(err, &invalid) {
		return check.Verdict{Reason: oadpv1alpha1.ReasonInvalidRestoreSpec, Message: invalid.Error()}, nil
	}
	if err != nil {
		return check.Verdict{}, fmt.Errorf("validate NonAdminRestore %s/%s: %w", o.NAR.Namespace, o.NAR.Name, err)
	}
	return lifecycle.Acceptance(o.NAR), nil
}
