package velero

import (
	"context"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"holdfast.dev/holdfast/activities"
	turns "holdfast.dev/holdfast/activities/queue"
	"holdfast.dev/holdfast/k8s"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/lifecycle"
	"holdfast.dev/holdfast/k8s/metrics"
	"holdfast.dev/holdfast/k8s/velero"
	"holdfast.dev/holdfast/starter/watch/caches"
	"holdfast.dev/holdfast/workflows/contract"
)

// census begins to count the objects of the kind, and counts Velero's present work on them into states. also is called for each
// Velero object.
func (s *served[T]) census(
	ctx context.Context, census *metrics.Census, states *map[velero.State]int, stalled *int, also func(made client.Object),
) (each func(T), err error) {
	*states = map[velero.State]int{}
	err = caches.Each(ctx, s.Client, s.made.Object, func(made client.Object) {
		(*states)[velero.StateOf(s.made.Phase(made))]++
		also(made)
	}, client.InNamespace(s.OADPNamespace))
	if census.Turns == nil {
		census.Turns = map[metrics.TurnLane]metrics.TurnsWaiting{}
	}
	for _, lane := range s.pool.Lanes() {
		census.Turns[activities.TurnLane(s.pool, lane)] = metrics.TurnsWaiting{}
	}
	return func(object T) {
		if k8s.Stalled(k8s.Conditions(object)) {
			*stalled++
		}
		if !lifecycle.DeletionRequested(object) && k8s.WaitsForTurn(k8s.Conditions(object)) {
			lane := contract.LaneHand
			if s.pool == contract.PoolBackups {
				lane = turns.Lane(object)
			}
			waiting := census.Turns[activities.TurnLane(s.pool, lane)]
			waiting.Add(object.GetCreationTimestamp().Time)
			census.Turns[activities.TurnLane(s.pool, lane)] = waiting
		}
	}, err
}

func (b *backups) count(ctx context.Context, census *metrics.Census) (func(*oadpv1alpha1.NonAdminBackup), error) {
	each, err := b.census(ctx, census, &census.VeleroBackups, &census.Stalled, func(made client.Object) {
		if started := made.(*velerov1.Backup).Status.StartTimestamp; started != nil && started.After(census.LastStart) {
			census.LastStart = started.Time
		}
	})
	if err != nil {
		return nil, err
	}
	return each, caches.Each(ctx, b.Client, veleroLocations.Object, func(location client.Object) {
		validated := location.(*velerov1.BackupStorageLocation).Status.LastValidationTime
		if validated != nil && validated.After(census.LastValidation) {
			census.LastValidation = validated.Time
		}
	}, client.InNamespace(b.OADPNamespace))
}

func (r *restores) count(ctx context.Context, census *metrics.Census) (func(*oadpv1alpha1.NonAdminRestore), error) {
	return r.census(ctx, census, &census.VeleroRestores, &census.StalledRestores, func(client.Object) {})
}

// count adds the pending approvals.
func (l *locations) count(
	ctx context.Context, census *metrics.Census,
) (each func(*oadpv1alpha1.NonAdminBackupStorageLocation), err error) {
	l.EachOf(ctx, approvalRequests.Object, func(object client.Object) {
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
	return func(*oadpv1alpha1.NonAdminBackupStorageLocation) {}, nil
}

// unfinishedBackup: a deleted one waits for its tenant until the spec says what becomes of the data. One without our finalizer is
// kept by somebody else's.
func unfinishedBackup(nab *oadpv1alpha1.NonAdminBackup) bool {
	if released(nab, oadpv1alpha1.NabFinalizer) {
		return false
	}
	if nab.Spec.DeleteBackup || nab.Spec.ForceDeleteBackup {
		return true
	}
	made := nab.Status.VeleroBackup
	ended := made != nil && made.Status != nil && velero.Finished(made.Status.Phase)
	return nab.DeletionTimestamp.IsZero() && underWay(nab, ended)
}

func unfinishedRestore(nar *oadpv1alpha1.NonAdminRestore) bool {
	made := nar.Status.VeleroRestore
	ended := made != nil && made.Status != nil && velero.Finished(made.Status.Phase) &&
		(lifecycle.FinalizationPhase(nar) == "" || lifecycle.FinalPhase(nar) != "")
	return !released(nar, oadpv1alpha1.NarFinalizer) && (!nar.DeletionTimestamp.IsZero() || underWay(nar, ended))
}

// released: the object is being deleted, and Holdfast has done its part.
func released(object client.Object, finalizer string) bool {
	return !object.GetDeletionTimestamp().IsZero() && !controllerutil.ContainsFinalizer(object, finalizer)
}

// underWay reports whether an object waits for Holdfast or Velero, and not for its tenant, who has to mend its spec. ended:
// Velero has ended what was made for it.
func underWay(object client.Object, ended bool) bool {
	switch lifecycle.Phase(object) {
	case oadpv1alpha1.NonAdminPhaseBackingOff:
		return k8s.WaitsForTurn(k8s.Conditions(object))
	case oadpv1alpha1.NonAdminPhaseCreated:
		return !ended && !lifecycle.AbsenceReported(object)
	}
	return true
}

// unfinishedDrill: what is left of a deleted one is cleaned up without it.
func unfinishedDrill(drill *holdfastv1alpha1.RestoreDrill) bool {
	phase := drill.Status.Phase
	return drill.DeletionTimestamp.IsZero() && phase != holdfastv1alpha1.DrillEnded && phase != holdfastv1alpha1.DrillKept
}
