package fdb

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/k8s/metrics"
)

// knownConditions are the values of the labels type and reason. Any other value (a status can be forged) counts as unknown.
var knownConditions = map[string][]string{
	fdbv1alpha1.ConditionIncorrectDeployment: {
		fdbv1alpha1.ReasonDeploymentMissing, fdbv1alpha1.ReasonDeploymentDiffers, fdbv1alpha1.ReasonDeploymentNotOurs,
		fdbv1alpha1.ReasonTemplateInvalid, fdbv1alpha1.ReasonDeploymentRefused,
	},
	fdbv1alpha1.ConditionDeploymentRollingOut: {fdbv1alpha1.ReasonAgentsNotReady},
	fdbv1alpha1.ConditionIncorrectBackupState: {
		fdbv1alpha1.ReasonNotRunning, fdbv1alpha1.ReasonNotStopped, fdbv1alpha1.ReasonNotPaused, fdbv1alpha1.ReasonNotResumed,
		fdbv1alpha1.ReasonWaitingForSlot, fdbv1alpha1.ReasonWaitingForAgents, fdbv1alpha1.ReasonInitialSnapshot,
		fdbv1alpha1.ReasonSnapshotStalled, fdbv1alpha1.ReasonRestarting, fdbv1alpha1.ReasonPauseDisagreement,
		fdbv1alpha1.ReasonTagTaken, fdbv1alpha1.ReasonToolFailing, fdbv1alpha1.ReasonLastStartInFuture,
		fdbv1alpha1.ReasonClusterUnreachable, fdbv1alpha1.ReasonStateUnknown, fdbv1alpha1.ReasonNoWorker,
		fdbv1alpha1.ReasonDataMissing, fdbv1alpha1.ReasonExpiryFailing,
	},
	fdbv1alpha1.ConditionMisconfiguredBackup: {
		fdbv1alpha1.ReasonParametersDiffer, fdbv1alpha1.ReasonClusterMissing, fdbv1alpha1.ReasonClusterNotReady,
		fdbv1alpha1.ReasonSecretMissing, fdbv1alpha1.ReasonCredentialsInvalid, fdbv1alpha1.ReasonDestinationInvalid,
		fdbv1alpha1.ReasonKeyRangesInvalid,
		fdbv1alpha1.ReasonContainerUsed, fdbv1alpha1.ReasonToolsMissing, fdbv1alpha1.ReasonTooManyBackups,
	},
}

const unknown = "unknown"

// patient are the reasons that may normally hold for days: a first snapshot may be long.
var patient = []string{fdbv1alpha1.ReasonInitialSnapshot, fdbv1alpha1.ReasonWaitingForSlot}

// count adds the FoundationDBBackups.
func (f *backups) count(_ context.Context, census *metrics.Census) (func(*fdbv1alpha1.FoundationDBBackup), error) {
	found := &census.FoundationDB
	*found = metrics.FDBCensus{Backups: map[metrics.FDBState]int{}, Conditions: map[metrics.FDBCondition]int{}}
	for kind, reasons := range knownConditions {
		for _, reason := range reasons {
			found.Conditions[metrics.FDBCondition{Type: kind, Reason: reason}] = 0
		}
	}
	earlier := func(a, b time.Time) time.Time {
		if b.IsZero() || (!a.IsZero() && a.Before(b)) {
			return a
		}
		return b
	}
	return func(object *fdbv1alpha1.FoundationDBBackup) {
		found.Backups[state(object)]++
		if meta.IsStatusConditionFalse(object.Status.Conditions, fdbv1alpha1.ConditionObjectiveMet) {
			found.ObjectivesMissed++
		}
		for _, condition := range fdbv1alpha1.Unmet(object.Status.Conditions) {
			counted := metrics.FDBCondition{Type: condition.Type, Reason: condition.Reason}
			if !slices.Contains(knownConditions[counted.Type], counted.Reason) {
				counted = metrics.FDBCondition{Type: unknown, Reason: unknown}
			}
			found.Conditions[counted]++
		}
		found.OldestFailure = earlier(found.OldestFailure, troubledSince(object))
		found.OldestRestorable = earlier(found.OldestRestorable, restorableUntil(object))
	}, nil
}

func state(object *fdbv1alpha1.FoundationDBBackup) metrics.FDBState {
	switch {
	case !object.DeletionTimestamp.IsZero():
		return metrics.FDBDeleting
	case object.Status.Reconciled && object.Status.ObservedGeneration == object.Generation:
		return metrics.FDBReconciled
	}
	return metrics.FDBUnreconciled
}

// troubledSince is when a backup's trouble began: it is being deleted, or it is not as its spec says for another reason than
// the patient ones. It is zero if neither holds. A backup without a status is in trouble since its creation.
func troubledSince(object *fdbv1alpha1.FoundationDBBackup) time.Time {
	switch {
	case !object.DeletionTimestamp.IsZero():
		return object.DeletionTimestamp.Time
	case object.Status.ObservedGeneration <= 0:
		return object.CreationTimestamp.Time
	}
	var since time.Time
	for _, condition := range fdbv1alpha1.Unmet(object.Status.Conditions) {
		began := condition.LastTransitionTime.Time
		if !slices.Contains(patient, condition.Reason) && (since.IsZero() || began.Before(since)) {
			since = began
		}
	}
	return since
}

// restorableUntil is the latest point to which a backup with backupState Running can be restored, over all its
// containers; zero if there is none yet. A backup that is being replaced falls behind until the new one can be restored.
func restorableUntil(object *fdbv1alpha1.FoundationDBBackup) time.Time {
	var latest time.Time
	wanted := object.Spec.BackupState == "" || object.Spec.BackupState == fdbv1alpha1.BackupStateRunning
	if !wanted || !object.DeletionTimestamp.IsZero() {
		return latest
	}
	for _, entry := range object.Status.Backups {
		if point := entry.LatestRestorable; point != nil && point.Timestamp != nil && point.Timestamp.After(latest) {
			latest = point.Timestamp.Time
		}
	}
	return latest
}
