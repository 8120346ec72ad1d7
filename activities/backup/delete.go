package backup

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"holdfast.dev/holdfast/activities"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/ledger"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/velero"
	"holdfast.dev/holdfast/workflows/contract"
)

// MarkDeleting deletes the NonAdminBackup if the spec says so (our finalizer keeps it until the rest is done), and announces
// the deletion in the status. The status is last, because a deletion increases the generation that the announcement refers to.
func (b *Activities) MarkDeleting(ctx context.Context, o *Objects, step contract.BackupStep) error {
	asked := o.NAB.Spec.DeleteBackup || o.NAB.Spec.ForceDeleteBackup
	if !asked && o.NAB.DeletionTimestamp.IsZero() {
		return nil
	}
	if o.NAB.Spec.DeleteBackup { // first, so that it is repeated until the status announces the deletion
		if err := b.deleteRestores(ctx, o.NAB); err != nil {
			return err
		}
	}
	if o.NAB.DeletionTimestamp.IsZero() {
		if err := b.deleteBackup(ctx, step, o); err != nil || o.NAB == nil {
			return err
		}
	}
	differs := false
	changed, err := b.patchStatus(ctx, o.NAB, func() { differs = ApplyDeletion(o.NAB) })
	if err != nil && !activities.TooLarge(err) { // an object too large for the announcement must be deleted nevertheless
		return err
	}
	if changed && differs {
		b.recorder().Deleting(o.NAB, DeletionMessage(o.NAB))
	}
	return nil
}

// deleteBackup deletes the NonAdminBackup and reads it again: its finalizer keeps it. What belongs to it has not changed by that.
func (b *Activities) deleteBackup(ctx context.Context, step contract.BackupStep, o *Objects) error {
	if o.Backup != nil { // a user's replace may have removed the finalizer, without which the object would be gone at once
		if _, err := b.PatchObject(ctx, o.NAB, addFinalizer(o.NAB)); err != nil {
			return err
		}
	}
	uid, version := o.NAB.UID, o.NAB.ResourceVersion
	err := b.Client.Delete(ctx, o.NAB, client.Preconditions{UID: &uid, ResourceVersion: &version})
	if apierrors.IsNotFound(err) {
		return activities.ErrGone
	}
	if err != nil {
		return fmt.Errorf("delete NonAdminBackup %s: %w", step.Ref, err)
	}
	if err := b.Gatherer.readObject(ctx, step.Ref, o); err != nil || o.NAB == nil {
		return err
	}
	return b.Gatherer.readDeletion(ctx, o)
}

// deleteRestores deletes the NonAdminRestores that name a backup whose data are deleted. Nothing waits for them.
func (b *Activities) deleteRestores(ctx context.Context, nab *oadpv1alpha1.NonAdminBackup) error {
	list := &oadpv1alpha1.NonAdminRestoreList{}
	if err := b.Client.List(ctx, list, client.InNamespace(nab.Namespace)); err != nil {
		return fmt.Errorf("list NonAdminRestores in namespace %s: %w", nab.Namespace, err)
	}
	for i := range list.Items {
		nar := &list.Items[i]
		spec := nar.Spec.RestoreSpec
		if spec == nil || spec.BackupName != nab.Name || !nar.DeletionTimestamp.IsZero() {
			continue
		}
		if err := b.Delete(ctx, nar); err != nil {
			return err
		}
	}
	return nil
}

// RequestDeletion creates DeleteBackupRequest number step.Attempt, by which Velero deletes the Backup with its data, and
// records it in the status.
func (b *Activities) RequestDeletion(ctx context.Context, o *Objects, step contract.BackupStep) error {
	if o.Backup == nil || !o.NAB.Spec.DeleteBackup || o.NAB.Spec.ForceDeleteBackup || o.NamespaceTerminating {
		return nil // no longer due
	}
	if err := b.Buckets.AdmitDeletion(ctx, o.Backup); err != nil {
		return err
	}
	request := velero.NewDeleteRequest(o.NAB, o.Backup, step.Attempt)
	switch err := b.Client.Create(ctx, request); {
	case err == nil:
		o.DeleteRequests = append(o.DeleteRequests, *request)
	case !apierrors.IsAlreadyExists(err):
		return fmt.Errorf("create DeleteBackupRequest %s/%s: %w", request.Namespace, request.Name, err)
	default: // an earlier attempt has made it, so that Velero may have answered
		if err := b.object().Reread(ctx, step.Ref, o); err != nil || o.NAB == nil {
			return err
		}
	}
	changed, err := b.patchStatus(ctx, o.NAB, func() { ApplyDeleteRequest(o.NAB, o) })
	if changed {
		b.recordDeletionRequested(o.NAB, request.Name, step.Attempt)
	}
	return err
}

// Withdraw deletes a Velero Backup that Velero has not started: nothing is in the object store, and Velero refuses a
// DeleteBackupRequest for it, because it has no storage location yet. A Backup that Velero starts meanwhile is left alone.
func (b *Activities) Withdraw(ctx context.Context, o *Objects, step contract.BackupStep) error {
	if !o.View(b.now()).Velero.Unstarted || !o.NAB.Spec.DeleteBackup || o.NamespaceTerminating {
		return nil // no longer due
	}
	if err := b.DeleteUnchanged(ctx, o.Backup); err != nil {
		return err
	}
	return b.object().Reread(ctx, step.Ref, o)
}

// DeleteVeleroObjects deletes the Velero Backup object and every request to delete it, and leaves the data: that is
// what spec.forceDeleteBackup does.
func (b *Activities) DeleteVeleroObjects(ctx context.Context, o *Objects, step contract.BackupStep) error {
	if !o.NAB.Spec.ForceDeleteBackup && !o.LocationGone {
		return nil
	}
	if err := b.deleteRequests(ctx, o); err != nil {
		return err
	}
	if o.Backup != nil {
		if err := b.enterReleased(ctx, o); err != nil {
			return err
		}
		if err := b.Delete(ctx, o.Backup); err != nil {
			return err
		}
	}
	return b.object().Reread(ctx, step.Ref, o)
}

// deleteRequests deletes all requests for the Velero Backup of the object, including those of others.
func (b *Activities) deleteRequests(ctx context.Context, o *Objects) error {
	for i := range o.DeleteRequests {
		request := &o.DeleteRequests[i]
		if o.Backup == nil && !owner.Backup.Names(request, o.NAB.Namespace, o.NAB.Name) {
			continue
		}
		if err := client.IgnoreNotFound(b.Client.Delete(ctx, request)); err != nil {
			return fmt.Errorf("delete DeleteBackupRequest %s/%s: %w", request.Namespace, request.Name, err)
		}
	}
	return nil
}

// Release removes our finalizer, so that the object is deleted. It first deletes requests of ours that Velero left.
func (b *Activities) Release(ctx context.Context, o *Objects, _ contract.BackupStep) error {
	if o.NAB.DeletionTimestamp.IsZero() || (o.Backup != nil && !o.NamespaceTerminating) {
		return nil
	}
	if o.Backup == nil {
		if err := b.deleteRequests(ctx, o); err != nil {
			return err
		}
	}
	if err := b.enterReleased(ctx, o); err != nil {
		return err
	}
	released, err := b.PatchObject(ctx, o.NAB, func() {
		controllerutil.RemoveFinalizer(o.NAB, oadpv1alpha1.NabFinalizer)
	})
	if err != nil {
		return err
	}
	if released {
		b.recordReleased(o)
	}
	if len(o.NAB.Finalizers) == 0 { // the API server has deleted it with the patch
		*o = Objects{}
	}
	return nil
}

// enterReleased records, before anything is deleted, that the object is released and its data may stay: the synchronization of
// backups must not create it again.
func (b *Activities) enterReleased(ctx context.Context, o *Objects) error {
	entry, stays := o.Released(b.Gatherer.ClusterID, b.now())
	if !stays {
		return nil
	}
	ledger := ledger.Ledger{Client: b.Client, OADPNamespace: b.Gatherer.OADPNamespace}
	return ledger.Add(ctx, o.BackupName, entry)
}
