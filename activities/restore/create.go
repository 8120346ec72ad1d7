package restore

import (
	"context"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"holdfast.dev/holdfast/activities"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/lifecycle"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/k8s/policy/restorespec"
	"holdfast.dev/holdfast/k8s/velero"
	"holdfast.dev/holdfast/workflows/contract"
)

// Start serves a new restore with a single read: it judges the spec, and creates the Velero Restore of an accepted one.
func (r *Activities) Start(ctx context.Context, o *Objects, step contract.RestoreStep) error {
	return r.start(ctx, o, step.Turn)
}

func (r *Activities) start(ctx context.Context, o *Objects, turn contract.UsableTurn) error {
	if err := r.admit(ctx, o); err != nil {
		return err
	}
	return r.create(ctx, o, turn)
}

// Admit validates the spec as of now and writes the verdict: the Accepted condition, the phase and, for an accepted spec
// that is not restored yet, the reference to the Velero Restore and our finalizer, both before that Restore exists.
func (r *Activities) Admit(ctx context.Context, o *Objects, _ contract.RestoreStep) error {
	return r.admit(ctx, o)
}

func (r *Activities) admit(ctx context.Context, o *Objects) error {
	if !o.NAR.DeletionTimestamp.IsZero() {
		return nil // a deletion has precedence, and must not wait for a policy or a backup
	}
	verdict, err := r.Gatherer.Judge(ctx, o)
	if err != nil {
		// Seen, not yet judged: the tenant is to see at least that while the cause lasts.
		_, patchErr := r.PatchStatus(ctx, o.NAR, func() { lifecycle.ApplySeen(o.NAR) })
		return errors.Join(err, patchErr)
	}
	if err := r.applyVerdict(ctx, o, verdict); err != nil {
		return err
	}
	if !verdict.Accepted && o.Restore == nil {
		return nil // nothing to protect
	}
	_, err = r.PatchObject(ctx, o.NAR, func() {
		controllerutil.AddFinalizer(o.NAR, oadpv1alpha1.NarFinalizer)
	})
	return err
}

func (r *Activities) applyVerdict(ctx context.Context, o *Objects, verdict check.Verdict) error {
	changed, err := r.PatchStatus(ctx, o.NAR, func() {
		if o.Restore != nil { // made by an attempt that was killed before it recorded it, or before this object's status was lost
			lifecycle.ApplyCreated(o.NAR)
			r.mirror(o)
		}
		lifecycle.ApplyVerdict(o.NAR, verdict, o.RestoreName, r.Gatherer.OADPNamespace)
	})
	if err != nil {
		return err
	}
	o.Verdict = &verdict
	if changed {
		r.recorder().Verdict(o.NAR, o.NAR.Status.Phase, verdict)
	}
	return nil
}

// create creates the Velero Restore, or finds the one of an earlier attempt, and records it. If the API server will never
// accept the Restore, that becomes a condition on the object. Without a turn that is usable the object waits if the policy
// gives turns.
func (r *Activities) create(ctx context.Context, o *Objects, turn contract.UsableTurn) error {
	view := o.View()
	if view.BeingDeleted || view.EverCreated || !view.SpecValidated || !view.Accepted || !view.Finalizer || o.Rules == nil {
		return nil // refused, or changed meanwhile: the workflow decides again on the view
	}
	if o.Restore == nil && o.Rules.Queue.MaxActiveRestores > 0 && !activities.TurnUsable(ctx, turn) {
		_, err := r.PatchStatus(ctx, o.NAR, func() { lifecycle.ApplyWaiting(o.NAR) })
		return err
	}
	if o.Restore == nil {
		if err := r.Buckets.Admit(ctx, o.Source.Backup); err != nil {
			return err
		}
		if err := r.createVeleroRestore(ctx, o); err != nil {
			if verdict, permanent := rejection(o.NAR, err); permanent {
				return r.applyVerdict(ctx, o, verdict)
			}
			return err
		}
		o.turnUsed = turn.Number > 0
		r.recordTurn(o)
	}
	changed, err := r.PatchStatus(ctx, o.NAR, func() {
		lifecycle.ApplyCreated(o.NAR)
		r.mirror(o)
	})
	if changed {
		r.recorder().Created(o.NAR, o.RestoreName, view.Phase, view.AwaitsTurn || o.turnUsed)
	}
	return err
}

// notOwnedError: an object of the required name exists and was made for something else.
type notOwnedError struct{ kind, name string }

// Error implements error.
func (e *notOwnedError) Error() string {
	return fmt.Sprintf("a %s named %q exists and was made for something else; once an administrator has removed it, "+
		"edit the spec or create another NonAdminRestore", e.kind, e.name)
}

// rejection turns an error that no retry can solve into the verdict for the tenant.
func rejection(nar *oadpv1alpha1.NonAdminRestore, err error) (verdict check.Verdict, permanent bool) {
	var foreign *notOwnedError
	if errors.As(err, &foreign) || activities.Refused(err) {
		return lifecycle.Refusal(nar, err), true
	}
	return check.Verdict{}, false
}

// createVeleroRestore creates the Velero Restore from the objects by which the spec was judged a moment ago.
func (r *Activities) createVeleroRestore(ctx context.Context, o *Objects) error {
	if o.modifier != nil {
		if err := r.createModifier(ctx, o); err != nil {
			return err
		}
	}
	created := velero.NewRestore(o.NAR, o.RestoreName, r.Gatherer.OADPNamespace,
		restorespec.Build(o.NAR, o.Source, *o.Rules, o.RestoreName))
	if shadowed := restorespec.ShadowedBy(o.NAR, o.Source, *o.Rules); shadowed != "" {
		created.Annotations[restorespec.ShadowedAnnotation] = shadowed
	}
	if err := activities.AsConflict(r.Client.Create(ctx, created)); err != nil {
		return fmt.Errorf("create Velero Restore %s/%s: %w", created.Namespace, created.Name, err)
	}
	o.Restore = created
	return nil
}

// createModifier creates the ConfigMap that Velero needs to restore from a tenant's storage location. It has the name of the
// Velero Restore. One of an earlier attempt, or of an earlier version, is found again, and replaced if its content differs.
func (r *Activities) createModifier(ctx context.Context, o *Objects) error {
	modifier := o.modifier
	err := r.Client.Create(ctx, modifier.DeepCopy())
	if err == nil {
		return nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create ConfigMap %s/%s: %w", modifier.Namespace, modifier.Name, err)
	}
	found := &corev1.ConfigMap{}
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(modifier), found); err != nil {
		return fmt.Errorf("get ConfigMap %s/%s: %w", modifier.Namespace, modifier.Name, err)
	}
	switch {
	case !owner.Restore.Names(found, o.NAR.Namespace, o.NAR.Name):
		return &notOwnedError{"ConfigMap", modifier.Name}
	case found.DeletionTimestamp.IsZero() && len(found.BinaryData) == 0 && maps.Equal(found.Data, modifier.Data):
		return nil
	}
	if err := r.Cluster.Delete(ctx, found); err != nil {
		return err
	}
	return apierrors.NewConflict(corev1.Resource("configmaps"), modifier.Name, err)
}
