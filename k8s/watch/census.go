package watch

import (
	"context"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/backup"
	"holdfast.dev/holdfast/k8s/metrics"
)

// censusTimeout: a filled cache answers at once.
const censusTimeout = 5 * time.Second

// nabPhases are the values of the label phase. What is none of them (a status can be forged) counts as unknown.
var nabPhases = map[oadpv1alpha1.NonAdminPhase]string{
	"":                                   "new", // not seen by its workflow yet
	oadpv1alpha1.NonAdminPhaseNew:        "new",
	oadpv1alpha1.NonAdminPhaseBackingOff: "backing_off",
	oadpv1alpha1.NonAdminPhaseCreated:    "created",
	oadpv1alpha1.NonAdminPhaseDeleting:   "deleting",
}

const unknownPhase = "unknown"

// Census counts the objects in the caches, for a scrape. It costs a walk over them without a copy, asks nobody, and is nil
// until the caches are filled.
func (w *Watcher) Census() *metrics.Census {
	if !w.watching.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), censusTimeout)
	defer cancel()
	velero := []client.ListOption{client.InNamespace(w.OADPNamespace), client.UnsafeDisableDeepCopy}
	var list velerov1.BackupList
	if err := w.gatherer.Reader.List(ctx, &list, velero...); err != nil {
		w.Log.Error("list Velero Backups in the cache", zap.Error(err))
		return nil
	}
	var locations velerov1.BackupStorageLocationList
	if err := w.gatherer.Reader.List(ctx, &locations, velero...); err != nil {
		w.Log.Error("list BackupStorageLocations in the cache", zap.Error(err))
		return nil
	}
	census := &metrics.Census{VeleroBackups: map[metrics.State]int{}, NonAdminBackups: map[string]int{unknownPhase: 0}}
	for i := range list.Items {
		status := &list.Items[i].Status
		census.VeleroBackups[veleroState(status.Phase)]++
		if status.StartTimestamp != nil && status.StartTimestamp.After(census.LastStart) {
			census.LastStart = status.StartTimestamp.Time
		}
	}
	for i := range locations.Items {
		if validated := locations.Items[i].Status.LastValidationTime; validated != nil && validated.After(census.LastValidation) {
			census.LastValidation = validated.Time
		}
	}
	for _, phase := range nabPhases {
		census.NonAdminBackups[phase] = 0
	}
	w.restores.count(ctx, census)
	w.each(ctx, func(nab *oadpv1alpha1.NonAdminBackup) {
		census.NonAdminBackups[phaseName(nab.Status.Phase)]++
		if meta.IsStatusConditionTrue(nab.Status.Conditions, string(oadpv1alpha1.NonAdminConditionVeleroStalled)) {
			census.Stalled++
		}
	})
	w.locations.count(ctx, census)
	if w.fdb != nil {
		w.fdb.backups.count(ctx, census)
	}
	return census
}

func phaseName(phase oadpv1alpha1.NonAdminPhase) string {
	if name, known := nabPhases[phase]; known {
		return name
	}
	return unknownPhase
}

// count adds the restores.
func (r *restores) count(ctx context.Context, census *metrics.Census) {
	census.NonAdminRestores = map[string]int{unknownPhase: 0}
	for _, phase := range nabPhases {
		census.NonAdminRestores[phase] = 0
	}
	r.each(ctx, func(nar *oadpv1alpha1.NonAdminRestore) {
		census.NonAdminRestores[phaseName(nar.Status.Phase)]++
		if meta.IsStatusConditionTrue(nar.Status.Conditions, string(oadpv1alpha1.NonAdminConditionVeleroStalled)) {
			census.StalledRestores++
		}
	})
}

// count adds the storage locations and the approvals that wait.
func (l *locations) count(ctx context.Context, census *metrics.Census) {
	census.StorageLocations = map[string]int{unknownPhase: 0}
	for _, phase := range nabPhases {
		census.StorageLocations[phase] = 0
	}
	l.eachLocation(ctx, func(object *oadpv1alpha1.NonAdminBackupStorageLocation) {
		census.StorageLocations[phaseName(object.Status.Phase)]++
	})
	var requests oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequestList
	if err := l.gatherer.Reader.List(ctx, &requests, client.InNamespace(l.OADPNamespace), client.UnsafeDisableDeepCopy); err != nil {
		l.Log.Error("list approval requests in the cache", zap.Error(err))
		return
	}
	for i := range requests.Items {
		condition := meta.FindStatusCondition(requests.Items[i].Status.Conditions,
			string(oadpv1alpha1.NonAdminConditionClusterAdminApproved))
		asked := requests.Items[i].Status.VeleroBackupStorageLocationApprovalRequest
		if asked == nil || asked.PendingSpec == nil ||
			condition == nil || condition.Reason != oadpv1alpha1.ReasonBSLSpecApprovalPending {
			continue
		}
		census.PendingApprovals++
		if census.OldestPending.IsZero() || condition.LastTransitionTime.Time.Before(census.OldestPending) {
			census.OldestPending = condition.LastTransitionTime.Time
		}
	}
}

// veleroState groups Velero's phases by what Velero does with a Backup.
func veleroState(phase velerov1.BackupPhase) metrics.State {
	switch phase {
	case "", velerov1.BackupPhaseNew, velerov1.BackupPhaseQueued, velerov1.BackupPhaseReadyToStart:
		return metrics.StateWaiting
	case velerov1.BackupPhaseInProgress:
		return metrics.StateInProgress
	case velerov1.BackupPhaseWaitingForPluginOperations, velerov1.BackupPhaseWaitingForPluginOperationsPartiallyFailed,
		velerov1.BackupPhaseFinalizing, velerov1.BackupPhaseFinalizingPartiallyFailed:
		return metrics.StateFinalizing
	case velerov1.BackupPhaseDeleting:
		return metrics.StateDeleting
	}
	if backup.Finished(phase) {
		return metrics.StateFinished
	}
	return metrics.StateUnknown
}
