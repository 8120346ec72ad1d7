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
	// room is how many Backups may be brought into the cluster.
	room int
}

// judged identifies the files of a step and the limit by which they are judged.
func (v *visit) judged(step Step) string {
	return fmt.Sprintf("%s/%d", Fingerprint(step.Files), v.maxArchive)
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
		err = v.inspect(ctx, step)
	case Bring:
		err = v.bring(ctx, step)
	}
	switch {
	case errors.Is(err, objectstore.ErrNotFound):
		return nil // the bucket has changed meanwhile
	case errors.Is(err, objectstore.ErrUnusable):
		v.known.withhold(step.Name, v.judged(step))
		v.report(ctx, v.location, eventWithheld, fmt.Sprintf("backup %s is withheld from Velero: %v", step.Name, err))
		return v.withhold(ctx, step)
	}
	return err
}

// withhold keeps a backup from Velero: without a Backup in the cluster, Velero reads none of its files.
func (v *visit) withhold(ctx context.Context, step Step) error {
	metrics.BackupWithheld()
	v.count(func(result *Result) { result.Withheld = append(result.Withheld, step.Name) })
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

// inspect reads the files of a Backup in the cluster, completes one that was brought there, and notes what was read.
func (v *visit) inspect(ctx context.Context, step Step) error {
	if err := v.store.Inspect(ctx, step.Name, step.Files, v.maxArchive); err != nil {
		return err
	}
	if !Pending(step.Made) {
		return v.note(ctx, step.Made, step.Files)
	}
	volumes, err := v.store.PodVolumeBackups(ctx, step.Name)
	if err != nil {
		return err
	}
	return v.complete(ctx, step, step.Made, volumes)
}

// note records which files of a Backup were read, unless it has changed since it was read.
func (b *Buckets) note(ctx context.Context, made *velerov1.Backup, files []objectstore.BackupFile) error {
	before := made.DeepCopy()
	if made.Annotations == nil {
		made.Annotations = map[string]string{}
	}
	made.Annotations[FilesAnnotation] = Fingerprint(files)
	err := b.Client.Patch(ctx, made, k8s.BoundPatch(before))
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("annotate Backup %s: %w", made.Name, err)
	}
	return nil
}

// bring creates the Velero Backup for files in the bucket, once all of them have been read.
func (v *visit) bring(ctx context.Context, step Step) error {
	if v.known.isWithheld(step.Name, v.judged(step)) {
		return v.withhold(ctx, step)
	}
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
	if v.room <= 0 {
		v.report(ctx, v.location, eventWithheld, fmt.Sprintf("backup %s is withheld from Velero: the location has %d Velero "+
			"Backups already", step.Name, maxBackups))
		return v.withhold(ctx, step)
	}
	if err := v.store.Inspect(ctx, step.Name, step.Files, v.maxArchive); err != nil {
		return err
	}
	volumes, err := v.store.PodVolumeBackups(ctx, step.Name)
	if err != nil {
		return err
	}
	if created, err := v.create(ctx, made); err != nil || !created {
		return err
	}
	v.room--
	v.count(func(result *Result) { result.Brought++ })
	return v.complete(ctx, step, made, volumes)
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

// complete creates the PodVolumeBackups of a Backup that was brought into the cluster.
func (v *visit) complete(ctx context.Context, step Step, of *velerov1.Backup, volumes []*velerov1.PodVolumeBackup) error {
	for _, stored := range volumes {
		made, ended := NewPodVolumeBackup(stored, of, v.location.Of.Namespace)
		if !ended {
			continue
		}
		if err := v.Client.Create(ctx, made); err != nil && !apierrors.IsAlreadyExists(err) && !activities.Refused(err) {
			return fmt.Errorf("create PodVolumeBackup %s: %w", made.Name, err)
		}
	}
	return v.note(ctx, of, step.Files)
}
