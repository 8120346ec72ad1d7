package backup

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/k8s/metrics"
	"holdfast.dev/holdfast/workflows/contract"
	fdbbackup "holdfast.dev/holdfast/workflows/fdb/backup"
)

// Reasons of Events on a FoundationDBBackup besides those of gather.StatusEvents.
const (
	eventFDBStopped   = "Stopped"
	eventFDBAbandoned = "Abandoned"
	eventFDBDataStay  = "DataStay"
)

func eventType(warning bool) string {
	if warning {
		return corev1.EventTypeWarning
	}
	return corev1.EventTypeNormal
}

// Observe reads the present state and maintains our finalizers: they keep the object until its backup has ended and, unless the
// spec says otherwise, its data are deleted. A user who sets spec.expiry.deletionFinalizer to false while the object is being
// deleted releases it, and the data stay.
func (b *Activities) Observe(ctx context.Context, s *sight, _ contract.ObjectStep) error {
	deleting := !s.Object.DeletionTimestamp.IsZero()
	requested := fdbbackup.DeletionRequested(s.Object)
	waives := deleting && !requested && controllerutil.ContainsFinalizer(s.Object, fdbv1alpha1.FinalizerDelete)
	if waives { // before: the object may be gone after
		b.Record(s.Object, corev1.EventTypeNormal, eventFDBDataStay, "Delete",
			"the data stay, because spec.expiry.deletionFinalizer was set to false")
	}
	_, err := b.PatchObject(ctx, s.Object, func() {
		if !deleting {
			controllerutil.AddFinalizer(s.Object, fdbv1alpha1.FinalizerStop)
		}
		switch {
		case !requested:
			controllerutil.RemoveFinalizer(s.Object, fdbv1alpha1.FinalizerDelete)
		case !deleting:
			controllerutil.AddFinalizer(s.Object, fdbv1alpha1.FinalizerDelete)
		}
	})
	return err
}

// Release removes our finalizers from an object that is being deleted, both or only that for its backup, and records Events about
// the backup and its data.
func (b *Activities) Release(ctx context.Context, s *sight, release contract.FDBRelease) error {
	stop := controllerutil.ContainsFinalizer(s.Object, fdbv1alpha1.FinalizerStop)
	wanted := controllerutil.ContainsFinalizer(s.Object, fdbv1alpha1.FinalizerDelete)
	data := wanted && release.Data
	if s.Object.DeletionTimestamp.IsZero() || (!stop && !data) {
		return nil
	}
	// The Event comes before the change: if the change is made but its answer is lost, nobody would record it. Twice is better than
	// never.
	switch {
	case stop && release.Abandoned != "":
		b.Record(s.Object, corev1.EventTypeWarning, eventFDBAbandoned, "Delete", "%s", release.Abandoned)
	case stop && wanted:
		b.Record(s.Object, corev1.EventTypeNormal, eventFDBStopped, "Delete", "the backup is stopped")
	case stop:
		b.Record(s.Object, corev1.EventTypeNormal, eventFDBStopped, "Delete",
			"the backup is stopped; its data stay")
	}
	if data {
		b.Record(s.Object, eventType(release.Warning), release.Reason, "Delete", "%s", release.Note)
	}
	changed, err := b.PatchObject(ctx, s.Object, func() {
		controllerutil.RemoveFinalizer(s.Object, fdbv1alpha1.FinalizerStop)
		if data {
			controllerutil.RemoveFinalizer(s.Object, fdbv1alpha1.FinalizerDelete)
		}
	})
	if !changed {
		return err
	}
	if stop {
		metrics.FDBBackupReleased(release.Abandoned != "")
	}
	if data {
		for _, url := range release.DataKept {
			metrics.FDBDataLeft(url)
		}
	}
	return err
}
