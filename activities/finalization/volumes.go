package finalization

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/k8s"
	"holdfast.dev/holdfast/k8s/objectstore"
)

// provisionedByAnnotation is on every volume that a provisioner has made for a claim. Other volumes were made by an
// administrator: a tenant's restore does not change their labels and policy.
const provisionedByAnnotation = "pv.kubernetes.io/provisioned-by"

// volumesTask gives newly provisioned volumes the labels and the reclaim policy of those in the backup (Velero #6435). It finds
// them through the restore's own claims, never by a name in the object store.
type volumesTask struct{}

// Name implements Task.
func (volumesTask) Name() string { return "volumes" }

// Summary implements Task.
func (volumesTask) Summary() string {
	return "Give new volumes the labels and reclaim policy of the backup"
}

// Timeout implements Task.
func (volumesTask) Timeout() time.Duration { return 2 * time.Minute }

// Run implements Task.
func (volumesTask) Run(ctx context.Context, c *Context) (Findings, error) {
	var found Findings
	var claims corev1.PersistentVolumeClaimList
	if err := c.Client.List(ctx, &claims, c.objects().Selector()...); err != nil {
		return found, fmt.Errorf("list restored PersistentVolumeClaims: %w", err)
	}
	if len(claims.Items) == 0 {
		return found, nil
	}
	usage, err := c.objects().Usage(ctx, claims.Items)
	if err != nil {
		return found, err
	}
	var bound []*corev1.PersistentVolumeClaim
	var waits error
	for i := range claims.Items {
		claim := &claims.Items[i]
		switch {
		case claim.Status.Phase == corev1.ClaimBound && claim.Spec.VolumeName != "":
			bound = append(bound, claim)
		case usage.Binds(claim) && !c.Expired: // the validation decides whether that is a problem
			waits = &activities.NotYetError{For: "PersistentVolumeClaim " + claim.Name + " to be bound"}
		}
	}
	if len(bound) > 0 { // else the object store need not be read
		if err := restoreAll(ctx, c, bound, &found); err != nil {
			return found, err
		}
	}
	return found, waits
}

// restoreAll changes the volumes of bound claims.
func restoreAll(ctx context.Context, c *Context, bound []*corev1.PersistentVolumeClaim, found *Findings) error {
	infos, err := backupVolumes(ctx, c)
	if err != nil {
		return c.storeProblem(found, err)
	}
	for _, claim := range bound {
		c.Progress()
		info, known := infos[claim.Name]
		if !known {
			continue
		}
		if err := restoreSettings(ctx, c, claim, info, found); err != nil {
			return err
		}
	}
	return nil
}

// backupVolumes returns what Velero recorded about those volumes of the namespace that a restore newly provisions, by claim.
// Backups of old releases of Velero have no such file.
func backupVolumes(ctx context.Context, c *Context) (map[string]*objectstore.PVSettings, error) {
	store, err := c.Store(ctx)
	if err != nil {
		return nil, err
	}
	infos, err := store.BackupVolumes(ctx, c.Restore.Spec.BackupName, c.NAR.Namespace)
	if err != nil && !errors.Is(err, objectstore.ErrNotFound) {
		return nil, err
	}
	return newVolumes(infos), nil
}

func newVolumes(infos []objectstore.VolumeInfo) map[string]*objectstore.PVSettings {
	settings := map[string]*objectstore.PVSettings{}
	for i := range infos {
		info := &infos[i]
		copied := info.BackupMethod == objectstore.MethodPodVolumeBackup || info.BackupMethod == objectstore.MethodCSISnapshot
		if copied && !info.Skipped && info.PVInfo != nil {
			settings[info.PVCName] = info.PVInfo
		}
	}
	return settings
}

// restoreSettings changes the volume of one bound claim, if it belongs to that claim and lacks a setting.
func restoreSettings(
	ctx context.Context, c *Context, claim *corev1.PersistentVolumeClaim, want *objectstore.PVSettings, found *Findings,
) error {
	volume := &corev1.PersistentVolume{}
	err := c.Client.Get(ctx, types.NamespacedName{Name: claim.Spec.VolumeName}, volume)
	if apierrors.IsNotFound(err) {
		return nil // the claim is lost: the validation says so
	}
	if err != nil {
		return fmt.Errorf("get PersistentVolume %s: %w", claim.Spec.VolumeName, err)
	}
	if !volumeOf(volume, claim) || volume.Annotations[provisionedByAnnotation] == "" {
		return nil
	}
	before := volume.DeepCopy()
	for _, warning := range applySettings(volume, want) {
		add(&found.Warnings.Cluster, "%s", warning)
	}
	if equality.Semantic.DeepEqual(before, volume) {
		return nil
	}
	err = c.Client.Patch(ctx, volume, k8s.BoundPatch(before))
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	if apierrors.IsInvalid(err) || (c.Expired && refusedForGood(err)) {
		add(&found.Errors.Cluster, "PersistentVolume %s, of claim %s: the API server refused its labels and reclaim policy: %s",
			volume.Name, claim.Name, apierrors.ReasonForError(err))
		return nil
	}
	return fmt.Errorf("patch PersistentVolume %s: %w", volume.Name, err)
}

// refusedForGood: an API server that works answers so. While it starts, some of these answers are temporary.
func refusedForGood(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// volumeOf reports whether a volume is bound to exactly that claim, not to an earlier one of the same name.
func volumeOf(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	ref := volume.Spec.ClaimRef
	return ref != nil && volume.Status.Phase == corev1.VolumeBound &&
		ref.Namespace == claim.Namespace && ref.Name == claim.Name && ref.UID == claim.UID && claim.UID != ""
}

// applySettings changes a volume as the backup says, within limits, and returns warnings.
func applySettings(volume *corev1.PersistentVolume, want *objectstore.PVSettings) []string {
	labels, warnings := labelsToSet(volume, want.Labels)
	if volume.Labels == nil && len(labels) > 0 {
		volume.Labels = map[string]string{}
	}
	maps.Copy(volume.Labels, labels)
	switch policy := corev1.PersistentVolumeReclaimPolicy(want.ReclaimPolicy); policy {
	case corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRetain:
		volume.Spec.PersistentVolumeReclaimPolicy = policy
	case "":
	default:
		warnings = append(warnings, fmt.Sprintf("PersistentVolume %s: the backup's reclaim policy is not valid for a new volume",
			volume.Name))
	}
	return append(warnings, foreignTopology(volume)...)
}
