package buckets

import (
	"context"
	"errors"
	"fmt"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/k8s"
	"holdfast.dev/holdfast/k8s/metrics"
	"holdfast.dev/holdfast/k8s/objectstore"
)

// visit is the work on one location.
type visit struct {
	*run
	location *Location
	store    *objectstore.Store
}

// take takes a step. What is wrong with a backup's files concerns that backup alone.
func (v *visit) take(ctx context.Context, step Step) error {
	var err error
	switch step.Action {
	case Remove:
		if err = v.remove(ctx, step.Made); err == nil {
			v.count(func(result *Result) { result.Removed++ })
		}
	case Inspect:
		err = v.inspect(ctx, step, step.Made)
	case Bring:
		err = v.bring(ctx, step)
	}
	switch {
	case errors.Is(err, objectstore.ErrNotFound):
		return nil // the bucket has changed meanwhile
	case errors.Is(err, objectstore.ErrUnusable):
		return v.withhold(ctx, step, err)
	}
	return err
}

// withhold keeps a backup from Velero: without a Backup in the cluster, Velero reads none of its files.
func (v *visit) withhold(ctx context.Context, step Step, cause error) error {
	metrics.BackupWithheld()
	v.count(func(result *Result) { result.Withheld++ })
	v.report(ctx, v.location, eventWithheld, fmt.Sprintf("Velero does not get to see backup %s: %v", step.Name, cause))
	if step.Made == nil {
		return nil
	}
	return v.remove(ctx, step.Made)
}

// remove deletes a Velero Backup, which keeps its files, unless it has changed since it was read.
func (b *Buckets) remove(ctx context.Context, made *velerov1.Backup) error {
	err := b.Client.Delete(ctx, made, client.Preconditions{UID: &made.UID, ResourceVersion: &made.ResourceVersion})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete Backup %s: %w", made.Name, err)
	}
	return nil
}

// inspect reads a backup's files, completes a Backup that was brought into the cluster, and notes what was read.
func (v *visit) inspect(ctx context.Context, step Step, made *velerov1.Backup) error {
	if err := v.store.Inspect(ctx, step.Name, step.Files, v.maxArchive); err != nil {
		return err
	}
	if Pending(made) {
		if err := v.bringPodVolumeBackups(ctx, made); err != nil {
			return err
		}
	}
	return v.note(ctx, made, step.Files)
}

// note records which files of a Backup were read, unless it has changed since it was read.
func (b *Buckets) note(ctx context.Context, made *velerov1.Backup, files []objectstore.BackupFile) error {
	before := made.DeepCopy()
	if made.Annotations == nil {
		made.Annotations = map[string]string{}
	}
	made.Annotations[FilesAnnotation] = Fingerprint(made.Name, files)
	err := b.Client.Patch(ctx, made, k8s.BoundPatch(before))
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("annotate Backup %s: %w", made.Name, err)
	}
	return nil
}

// bring creates the Velero Backup for files in the bucket.
func (v *visit) bring(ctx context.Context, step Step) error {
	exists, err := k8s.Get(ctx, v.Client, "Velero Backup", v.OADPNamespace, step.Name, &velerov1.Backup{})
	if err != nil || exists { // it lies elsewhere
		return err
	}
	stored, err := v.store.BackupMetadata(ctx, step.Name)
	if err != nil {
		return err
	}
	made, ours := NewBackup(stored, step.Name, v.location.Of.Namespace, v.location.Velero, time.Now())
	if !ours {
		v.count(func(result *Result) { result.Untrusted++ })
		return nil
	}
	if err := v.store.Inspect(ctx, step.Name, step.Files, v.maxArchive); err != nil {
		return err
	}
	if created, err := v.create(ctx, made); err != nil || !created {
		return err
	}
	v.count(func(result *Result) { result.Brought++ })
	return v.inspect(ctx, step, made)
}

// create returns false if there is a Backup of that name, or the API server will never take this one.
func (v *visit) create(ctx context.Context, made *velerov1.Backup) (bool, error) {
	err := v.Client.Create(ctx, made)
	switch {
	case apierrors.IsAlreadyExists(err):
		return false, nil
	case activities.Refused(err):
		v.report(ctx, v.location, eventWithheld, fmt.Sprintf("Backup %s cannot be created: %v", made.Name, err))
		return false, nil
	case err != nil:
		return false, fmt.Errorf("create Backup %s: %w", made.Name, err)
	}
	return true, nil
}

func (v *visit) bringPodVolumeBackups(ctx context.Context, of *velerov1.Backup) error {
	v.lists.Lock()
	defer v.lists.Unlock()
	var all []*velerov1.PodVolumeBackup
	err := v.store.PodVolumeBackups(ctx, of.Name, func(stored *velerov1.PodVolumeBackup) {
		if made, ended := NewPodVolumeBackup(stored, of, v.location.Of.Namespace); ended {
			all = append(all, made)
		}
	})
	if err != nil {
		return err
	}
	for _, made := range all {
		if err := v.Client.Create(ctx, made); err != nil && !apierrors.IsAlreadyExists(err) && !activities.Refused(err) {
			return fmt.Errorf("create PodVolumeBackup %s: %w", made.Name, err)
		}
	}
	return nil
}
