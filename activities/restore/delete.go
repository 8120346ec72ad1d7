package restore

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/lifecycle"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/workflows/contract"
)

// Delete announces the deletion in the status and deletes the Velero Restore, unless Velero works on it. Velero keeps it until
// it has removed the restore's files from the object store. Restored objects stay.
func (r *Activities) Delete(ctx context.Context, o *Objects, step contract.RestoreStep) error {
	if o.NAR.DeletionTimestamp.IsZero() || o.NamespaceTerminating {
		return nil // no longer due
	}
	changed, err := r.PatchStatus(ctx, o.NAR, func() {
		lifecycle.ApplyDeletion(o.NAR, oadpv1alpha1.MessageRestoreDeletionAccepted)
	})
	if err != nil && !activities.TooLarge(err) { // an object too large for the announcement must be deleted nevertheless
		return err
	}
	if changed {
		r.recorder().Deleting(o.NAR, oadpv1alpha1.MessageRestoreDeletionAccepted)
	}
	if o.View().Velero.AtWork {
		return nil // its end is an event that brings us here again
	}
	if err := r.deleteVeleroRestore(ctx, o); err != nil {
		return err
	}
	return r.object().Reread(ctx, step.Ref, o)
}

func (r *Activities) deleteVeleroRestore(ctx context.Context, o *Objects) error {
	if o.Restore == nil || !o.Restore.DeletionTimestamp.IsZero() {
		return nil
	}
	return r.Cluster.Delete(ctx, o.Restore)
}

// Release removes our finalizer, so that the object is deleted. The resource modifier is deleted first. In a namespace that is
// being deleted it waits for nothing.
func (r *Activities) Release(ctx context.Context, o *Objects, step contract.RestoreStep) error {
	if o.NAR.DeletionTimestamp.IsZero() || (o.Restore != nil && !o.NamespaceTerminating) {
		return nil
	}
	if err := r.deleteVeleroRestore(ctx, o); err != nil {
		return err
	}
	modifier := &corev1.ConfigMap{}
	exists, err := k8s.Get(ctx, r.Client, "ConfigMap", r.Gatherer.OADPNamespace, o.RestoreName, modifier)
	if err != nil {
		return err
	}
	if exists && owner.Restore.Names(modifier, o.NAR.Namespace, o.NAR.Name) {
		if err := r.Cluster.Delete(ctx, modifier); err != nil {
			return err
		}
	}
	released, err := r.PatchObject(ctx, o.NAR, func() {
		controllerutil.RemoveFinalizer(o.NAR, oadpv1alpha1.NarFinalizer)
	})
	if err != nil {
		return err
	}
	if released {
		r.recordReleased(o)
	}
	return r.object().Reread(ctx, step.Ref, o)
}
