package velero

import (
	"context"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities"
	turns "holdfast.dev/holdfast/activities/queue"
	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/lifecycle"
	"holdfast.dev/holdfast/k8s/metrics"
	"holdfast.dev/holdfast/k8s/velero"
	"holdfast.dev/holdfast/k8s/watch/caches"
	"holdfast.dev/holdfast/workflows/contract"
)

// phases are the values of the label phase. Any other value (a status can be forged) counts as unknown.
var phases = map[string]string{
	"":                                    "new", // not seen by its workflow yet
	string(oadpv1alpha1.NonAdminPhaseNew): "new",
	string(oadpv1alpha1.NonAdminPhaseBackingOff): "backing_off",
	string(oadpv1alpha1.NonAdminPhaseCreated):    "created",
	string(oadpv1alpha1.NonAdminPhaseDeleting):   "deleting",
}

const unknownPhase = "unknown"

// tally counts by phase.
type tally map[string]int

func newTally() tally {
	t := tally{unknownPhase: 0}
	for _, phase := range phases {
		t[phase] = 0
	}
	return t
}

func (t tally) add(object client.Object) {
	name, known := phases[phaseOf(object)]
	if !known {
		name = unknownPhase
	}
	t[name]++
}

func stalled(conditions []metav1.Condition) int {
	if meta.IsStatusConditionTrue(conditions, string(oadpv1alpha1.NonAdminConditionVeleroStalled)) {
		return 1
	}
	return 0
}

// count adds the backups, and Velero's present work.
func (b *backups) count(ctx context.Context, census *metrics.Census) error {
	census.VeleroBackups = map[velero.State]int{}
	there := client.InNamespace(b.OADPNamespace)
	err := caches.Each(ctx, b.Client, &velerov1.Backup{}, func(object client.Object) {
		status := &object.(*velerov1.Backup).Status
		census.VeleroBackups[velero.StateOf(status.Phase)]++
		if status.StartTimestamp != nil && status.StartTimestamp.After(census.LastStart) {
			census.LastStart = status.StartTimestamp.Time
		}
	}, there)
	if err != nil {
		return err
	}
	err = caches.Each(ctx, b.Client, &velerov1.BackupStorageLocation{}, func(object client.Object) {
		validated := object.(*velerov1.BackupStorageLocation).Status.LastValidationTime
		if validated != nil && validated.After(census.LastValidation) {
			census.LastValidation = validated.Time
		}
	}, there)
	if err != nil {
		return err
	}
	counted, waiting := newTally(), make([]metrics.TurnsWaiting, contract.TurnLanes)
	b.Each(ctx, func(nab *oadpv1alpha1.NonAdminBackup) {
		counted.add(nab)
		census.Stalled += stalled(nab.Status.Conditions)
		if !lifecycle.DeletionRequested(nab) && k8s.WaitsForTurn(nab.Status.Conditions) {
			waiting[turns.Lane(nab)].Add(nab.CreationTimestamp.Time)
		}
	})
	census.NonAdminBackups = counted
	addTurns(census, contract.PoolBackups, waiting)
	return nil
}

// addTurns adds those that wait for a turn, by lanes.
func addTurns(census *metrics.Census, pool contract.Pool, waiting []metrics.TurnsWaiting) {
	if census.Turns == nil {
		census.Turns = map[metrics.TurnLane]metrics.TurnsWaiting{}
	}
	for _, lane := range pool.Lanes() {
		census.Turns[activities.TurnLane(pool, lane)] = waiting[lane]
	}
}

// count adds the restores, and Velero's present work on them.
func (r *restores) count(ctx context.Context, census *metrics.Census) error {
	census.VeleroRestores = map[velero.State]int{}
	err := caches.Each(ctx, r.Client, &velerov1.Restore{}, func(object client.Object) {
		census.VeleroRestores[velero.StateOf(object.(*velerov1.Restore).Status.Phase)]++
	}, client.InNamespace(r.OADPNamespace))
	if err != nil {
		return err
	}
	counted, waiting := newTally(), make([]metrics.TurnsWaiting, contract.TurnLanes)
	r.Each(ctx, func(nar *oadpv1alpha1.NonAdminRestore) {
		counted.add(nar)
		census.StalledRestores += stalled(nar.Status.Conditions)
		if !lifecycle.DeletionRequested(nar) && k8s.WaitsForTurn(nar.Status.Conditions) {
			waiting[contract.LaneHand].Add(nar.CreationTimestamp.Time)
		}
	})
	census.NonAdminRestores = counted
	addTurns(census, contract.PoolRestores, waiting)
	return nil
}

// count adds the storage locations and the pending approvals.
func (l *locations) count(ctx context.Context, census *metrics.Census) error {
	counted := newTally()
	l.Each(ctx, func(object *oadpv1alpha1.NonAdminBackupStorageLocation) { counted.add(object) })
	census.StorageLocations = counted
	l.EachOf(ctx, &oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequest{}, func(object client.Object) {
		status := &object.(*oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequest).Status
		condition := meta.FindStatusCondition(status.Conditions, string(oadpv1alpha1.NonAdminConditionClusterAdminApproved))
		asked := status.VeleroBackupStorageLocationApprovalRequest
		if asked == nil || asked.PendingSpec == nil ||
			condition == nil || condition.Reason != oadpv1alpha1.ReasonBSLSpecApprovalPending {
			return
		}
		census.PendingApprovals++
		if census.OldestPending.IsZero() || condition.LastTransitionTime.Time.Before(census.OldestPending) {
			census.OldestPending = condition.LastTransitionTime.Time
		}
	}, client.InNamespace(l.OADPNamespace))
	return nil
}
