package drill

import (
	"context"
	"errors"
	"fmt"
	"slices"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.temporal.io/sdk/activity"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/activities/backup"
	"holdfast.dev/holdfast/activities/drill/gather"
	"holdfast.dev/holdfast/activities/restored"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/k8s/objectstore"
	"holdfast.dev/holdfast/workflows/contract"
)

// checks are run by name.
var checks = map[string]func(*Activities, context.Context, *objects, contract.DrillStep) ([]finding, error){
	holdfastv1alpha1.CheckObjects:   (*Activities).checkObjects,
	holdfastv1alpha1.CheckWorkloads: (*Activities).checkWorkloads,
	holdfastv1alpha1.CheckJob:       (*Activities).checkJob,
}

// Check runs the check that is due, and writes its result. A check that waits ends with ErrorNotYet and is retried.
func (a *Activities) Check(ctx context.Context, step contract.DrillStep) (contract.DrillView, error) {
	defer activities.Beating(ctx)()
	view, err := a.object().Update(ctx, step.Ref, func(o *objects) error {
		if !o.stays() || o.Restore == nil || o.Drill.Status.Concluded != nil || o.View().Oversized {
			return nil
		}
		due := gather.Pending(&o.Drill.Status)
		if due == nil || due.Name != step.Check {
			return nil // done by an earlier attempt
		}
		check, known := checks[due.Name]
		if !known {
			return fmt.Errorf("unknown check %q", due.Name) // another worker knows it: releases differ for a while
		}
		o.mirror() // in memory: a patch below writes it
		findings, err := check(a, ctx, o, step)
		if err != nil && o.View().Late && ctx.Err() == nil {
			findings, err = []finding{inconclusive("the check did not finish in time: %v", err)}, nil
		}
		if err != nil {
			return err
		}
		fresh, ready := *o.Drill.Status.DeepCopy(), o.ready
		if err := a.reread(ctx, step.Ref, o); err != nil {
			return err
		}
		if !o.stays() {
			return nil
		}
		if !o.hasNamespace() {
			findings = []finding{inconclusive("Namespace %s was deleted during the drill", o.Name)}
		}
		o.ready = ready
		return a.patch(ctx, o, func() {
			o.mirror()
			if fresh.Measured != nil {
				o.measured().Objects = max(o.measured().Objects, fresh.Measured.Objects)
				o.measured().Bytes = max(o.measured().Bytes, fresh.Measured.Bytes)
			}
			o.record(step.Check, findings)
		})
	})
	return view, err
}

// checkObjects compares what was restored with the list of the backup, and the archive with what it was.
func (a *Activities) checkObjects(ctx context.Context, o *objects, _ contract.DrillStep) ([]finding, error) {
	made, err := a.Stores.Backup(ctx, o.Restore)
	if err != nil {
		return a.storeProblem(ctx, o, err)
	}
	if backup.DigestsDue(made) && !o.View().Late {
		return nil, &activities.NotYetError{For: "the digests of the backup to be recorded"}
	}
	findings, objects, err := a.compareLists(ctx, o, made)
	if err != nil {
		return a.storeProblem(ctx, o, err)
	}
	o.measured().Objects = objects
	if o.measured().Bytes, err = a.restoredBytes(ctx, o); err != nil {
		return nil, err
	}
	changed, err := a.compareArchive(ctx, o, made)
	if err != nil {
		return a.storeProblem(ctx, o, err)
	}
	if objects == 0 && !slices.ContainsFunc(findings, func(f finding) bool { return f.inconclusive }) {
		findings = append(findings, inconclusive(nothingRestored))
	}
	return append(findings, changed...), nil
}

// compareLists compares the list of the backup with that of what was restored, and counts the latter.
func (a *Activities) compareLists(
	ctx context.Context, o *objects, made *velerov1.Backup,
) (findings []finding, count int64, err error) {
	store, err := a.Stores.Open(ctx, made, o.Drill.Namespace)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	spec := o.Restore.Spec.DeepCopy()
	spec.LabelSelector = nil // it leaves out Pods alone, which are not compared
	compared := restored.Comparison{Namespace: o.Drill.Namespace, Into: o.Name, Spec: spec}
	err = compared.Read(ctx, store, o.Name, func() { activity.RecordHeartbeat(ctx) })
	switch {
	case errors.Is(err, objectstore.ErrNotFound) && compared.Backup != nil:
		return []finding{inconclusive("Velero has not written to the object store what it has restored: %v", err)}, 0, nil
	case err != nil:
		return nil, 0, err
	}
	volumes, err := store.BackupVolumes(ctx, o.Restore.Spec.BackupName, o.Drill.Namespace)
	if err != nil && !errors.Is(err, objectstore.ErrNotFound) {
		return nil, 0, err
	}
	for _, listed := range compared.Restored {
		count += int64(len(listed))
	}
	return compare(compared, volumes, o.Restore.Status.Errors), count, nil
}

// restoredBytes is how much of volumes' data Velero has restored, by its own count.
func (a *Activities) restoredBytes(ctx context.Context, o *objects) (sum int64, err error) {
	var volumes velerov1.PodVolumeRestoreList
	of := client.MatchingLabels{velerov1.RestoreNameLabel: o.Restore.Name}
	if err := a.Client.List(ctx, &volumes, client.InNamespace(a.Gatherer.OADPNamespace), of); err != nil {
		return 0, fmt.Errorf("list the PodVolumeRestores of %s: %w", o.Restore.Name, err)
	}
	for i := range volumes.Items {
		sum += volumes.Items[i].Status.Progress.BytesDone
	}
	return sum, nil
}

// storeProblem: a file that is not there is a finding, unless the backup has gone meanwhile. Any other problem may pass until the
// drill is late, and says nothing about the backup.
func (a *Activities) storeProblem(ctx context.Context, o *objects, err error) ([]finding, error) {
	var problem *objectstore.Error
	switch {
	case errors.Is(err, objectstore.ErrNotFound):
		gone, again := a.backupGone(ctx, o)
		switch {
		case again != nil:
			return nil, again
		case gone != "":
			return []finding{inconclusive("%s", gone)}, nil
		}
		return []finding{wrong("%v", err)}, nil
	case errors.As(err, &problem) && errors.Is(err, objectstore.ErrUnusable):
		return []finding{inconclusive("%s", problem)}, nil
	}
	return nil, err
}

// backupGone says that the backup of the drill was deleted meanwhile; empty if it was not.
func (a *Activities) backupGone(ctx context.Context, o *objects) (string, error) {
	status := &o.Drill.Status
	source, err := a.Restores.SourceOf(ctx, o.Drill.Namespace, status.Backup)
	switch nab := source.NAB; {
	case err != nil:
		return "", err
	case nab == nil, nab.UID != status.BackupUID, !nab.DeletionTimestamp.IsZero(), nab.Spec.DeleteBackup, nab.Spec.ForceDeleteBackup,
		source.Backup == nil, !source.Backup.DeletionTimestamp.IsZero(), source.Backup.Status.Phase == velerov1.BackupPhaseDeleting:
		return fmt.Sprintf("NonAdminBackup %s was deleted during the drill", status.Backup), nil
	}
	return "", nil
}

// hasNamespace reports whether the namespace of the drill is there, and stays.
func (o *objects) hasNamespace() bool {
	return o.Namespace != nil && o.Namespace.DeletionTimestamp.IsZero()
}
