package drill

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/k8s"
	"holdfast.dev/holdfast/workflows/contract"
)

// ReleaseVolumes has the volumes of the drill's claims deleted with the claims, also those of a storage class that retains
// volumes. Only a volume that was made for such a claim is changed. The ConfigMap of the Velero Restore, which has finished, goes
// too.
func (a *Activities) ReleaseVolumes(ctx context.Context, o *objects, _ contract.DrillStep) error {
	if o.Namespace == nil {
		return activities.ErrUnchanged
	}
	var claims corev1.PersistentVolumeClaimList
	if err := a.Client.List(ctx, &claims, client.InNamespace(o.Name)); err != nil {
		return fmt.Errorf("list PersistentVolumeClaims in %s: %w", o.Name, err)
	}
	for i := range claims.Items {
		if err := a.releaseVolume(ctx, o, &claims.Items[i]); err != nil {
			return err
		}
	}
	return a.removeModifier(ctx, o)
}

// provisionedByAnnotation is on every volume that a provisioner has made for a claim.
const provisionedByAnnotation = "pv.kubernetes.io/provisioned-by"

// deleteReleased has the volumes deleted that claims of the drill have got while its namespace was being deleted.
func (a *Activities) deleteReleased(ctx context.Context, o *objects) error {
	var released []*corev1.PersistentVolume
	err := activities.EachPage(ctx, a.Client, func(page *corev1.PersistentVolumeList) {
		for i := range page.Items {
			volume := &page.Items[i]
			claim := volume.Spec.ClaimRef
			retained := volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain
			if claim != nil && claim.Namespace == o.Name && retained && volume.Annotations[provisionedByAnnotation] != "" {
				released = append(released, volume.DeepCopy())
			}
		}
	})
	if err != nil {
		return fmt.Errorf("list PersistentVolumes: %w", err)
	}
	for _, volume := range released {
		if err := a.deleteWithClaim(ctx, volume); err != nil {
			return err
		}
	}
	return nil
}

// deleteWithClaim has a volume deleted when its claim is gone.
func (a *Activities) deleteWithClaim(ctx context.Context, volume *corev1.PersistentVolume) error {
	_, err := a.PatchObject(ctx, volume, func() {
		volume.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
	})
	return err
}

func (a *Activities) releaseVolume(ctx context.Context, o *objects, claim *corev1.PersistentVolumeClaim) error {
	if claim.Spec.VolumeName == "" {
		return nil
	}
	volume := &corev1.PersistentVolume{}
	exists, err := k8s.Get(ctx, a.Client, "PersistentVolume", "", claim.Spec.VolumeName, volume)
	if err != nil || !exists {
		return err
	}
	bound := volume.Spec.ClaimRef
	mine := bound != nil && bound.UID == claim.UID && bound.Namespace == claim.Namespace
	// A claim may be bound to a volume that was there before, and is somebody's.
	made := volume.Annotations[provisionedByAnnotation] != "" && !volume.CreationTimestamp.Before(&o.Namespace.CreationTimestamp)
	if !mine || !made {
		return nil
	}
	return a.deleteWithClaim(ctx, volume)
}
