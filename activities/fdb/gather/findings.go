package gather

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/activities/fdb/conditions"
	"holdfast.dev/holdfast/k8s"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/workflows/contract"
	fdbbackup "holdfast.dev/holdfast/workflows/fdb/backup"
)

// ApplyFindings writes the findings of a pass into the status.
func ApplyFindings(object *fdbv1alpha1.FoundationDBBackup, findings contract.FDBFindings, now time.Time) {
	status := &object.Status
	applyExpiry(status, findings.Expiry)
	applyBackups(status, findings.Backups)
	if findings.ExpiryAlone {
		return
	}
	status.UID, status.ObservedGeneration = object.UID, findings.Generation
	before := status.Conditions
	status.Conditions = conditions.List(status.Conditions, conditions.Found{
		Held: findings.Conditions, Otherwise: reconciled(object), Generation: findings.Generation, At: now,
	})
	applyObjective(object, before, now)
	status.Reconciled = len(findings.Conditions) == 0 && findings.Generation == object.Generation
}

// reconciled is what Ready says if no condition holds.
func reconciled(object *fdbv1alpha1.FoundationDBBackup) conditions.Outcome {
	if !object.DeletionTimestamp.IsZero() {
		return conditions.Outcome{
			Status: metav1.ConditionFalse, Reason: fdbv1alpha1.ReasonDeleting, Message: "the backup is stopped and is being deleted",
		}
	}
	return conditions.Outcome{
		Status: metav1.ConditionTrue, Reason: fdbv1alpha1.ReasonReconciled, Message: "the backup matches its spec",
	}
}

func applyBackups(status *fdbv1alpha1.FoundationDBBackupStatus, backups []contract.FDBBackup) {
	status.Backups = nil
	for _, found := range backups {
		status.Backups = append(status.Backups, fdbv1alpha1.BackupDetails{
			Tag: found.Tag, URL: found.URL, State: found.State, KeyRanges: found.KeyRanges,
			OldestData: restorePoint(found.Oldest), LatestRestorable: restorePoint(found.Latest),
		})
	}
}

func restorePoint(point *contract.FDBPoint) *fdbv1alpha1.RestorePoint {
	if point == nil {
		return nil
	}
	made := &fdbv1alpha1.RestorePoint{Version: point.Version}
	if point.Time != 0 {
		at := metav1.NewTime(time.Unix(point.Time, 0).UTC())
		made.Timestamp = &at
	}
	return made
}

// plainBackups are status.backups as plain values.
func plainBackups(status fdbv1alpha1.FoundationDBBackupStatus) []contract.FDBBackup {
	var plain []contract.FDBBackup
	for _, entry := range status.Backups {
		plain = append(plain, contract.FDBBackup{
			Tag: entry.Tag, URL: entry.URL, State: entry.State, KeyRanges: entry.KeyRanges,
			Oldest: plainPoint(entry.OldestData), Latest: plainPoint(entry.LatestRestorable),
		})
	}
	return plain
}

func plainPoint(point *fdbv1alpha1.RestorePoint) *contract.FDBPoint {
	if point == nil {
		return nil
	}
	plain := &contract.FDBPoint{Version: point.Version}
	if point.Timestamp != nil {
		plain.Time = point.Timestamp.Unix()
	}
	return plain
}

// ApplyPlan records where the next backup goes. Earlier plans stay until the state of the database shows that they were not
// started: the result of a start may have been unknown.
func ApplyPlan(object *fdbv1alpha1.FoundationDBBackup, desired contract.FDBDesired, at time.Time) error {
	place, err := fdb.PlaceAt(desired, at)
	if err != nil {
		return err
	}
	there := func(entry fdbv1alpha1.BackupDetails) bool { return fdbbackup.SamePlace(entry.URL, place) }
	if slices.ContainsFunc(object.Status.Backups, there) {
		return nil // a stale plan; the next findings remove it
	}
	object.Status.UID = object.UID
	object.Status.Backups = append(object.Status.Backups, fdbv1alpha1.BackupDetails{
		Tag: desired.Tag, URL: place, State: fdb.StateNeverRan, KeyRanges: desired.KeyRanges,
	})
	return nil
}

// View returns what decides the next step, except for the agents' Deployment and the namespace.
func (o *Objects) View() contract.FDBBackupView {
	if o.Object == nil {
		return contract.FDBBackupView{}
	}
	object, owner := o.Object, ""
	var changes int64
	if objective, is := objectiveOf(object); is && !objective.Paused {
		if _, at := objective.Judge(time.Now()); !at.IsZero() {
			changes = at.Unix()
		}
	}
	if o.Reachable() {
		owner = o.Owner()
	}
	return contract.FDBBackupView{
		Found:             true,
		BeingDeleted:      !object.DeletionTimestamp.IsZero(),
		Held:              slices.Contains(object.Finalizers, fdbv1alpha1.FinalizerStop),
		DeleteWanted:      slices.Contains(object.Finalizers, fdbv1alpha1.FinalizerDelete),
		DeletionRequested: fdbbackup.DeletionRequested(object),
		Policy:            object.Spec.Expiry.MaxRetention != "",
		Expiry:            plainExpiry(object.Status.Expiry),
		Generation:        object.Generation,
		Observed: object.Status.ObservedGeneration == object.Generation &&
			!k8s.JustRestored(object, object.Status.UID),
		Reconciled:       object.Status.Reconciled && len(fdbv1alpha1.Unmet(object.Status.Conditions)) == 0,
		Owner:            owner,
		ClusterGone:      o.Cluster == nil,
		Problem:          o.Problem,
		Desired:          o.Desired(),
		Backups:          plainBackups(object.Status),
		ObjectiveChanges: changes,
	}
}

// AwaitsSlot reports whether, by the object's status, its backup waits for a slot, and since when.
func AwaitsSlot(object *fdbv1alpha1.FoundationDBBackup) (since time.Time, waits bool) {
	for _, condition := range fdbv1alpha1.Unmet(object.Status.Conditions) {
		if condition.Reason == fdbv1alpha1.ReasonWaitingForSlot && condition.Status == metav1.ConditionTrue {
			since, waits = condition.LastTransitionTime.Time, object.DeletionTimestamp.IsZero()
		}
	}
	return since, waits
}

// InFirstSnapshot reports whether, by the object's status, its backup is in its first snapshot, or about to start one, and holds
// a slot for it. A snapshot that has stalled has given its slot back.
func InFirstSnapshot(object *fdbv1alpha1.FoundationDBBackup) bool {
	if len(object.Status.Backups) == 0 || object.Spec.BackupState == fdbv1alpha1.BackupStateStopped {
		return false
	}
	for _, condition := range fdbv1alpha1.Unmet(object.Status.Conditions) {
		if condition.Reason == fdbv1alpha1.ReasonSnapshotStalled || condition.Type == fdbv1alpha1.ConditionMisconfiguredBackup {
			return false
		}
	}
	switch object.Status.Backups[len(object.Status.Backups)-1].State {
	case fdb.StateSubmitted, fdb.StateRunning:
		return object.Spec.BackupState != fdbv1alpha1.BackupStatePaused
	}
	return false
}

// applyExpiry writes the result of a turn, once.
func applyExpiry(status *fdbv1alpha1.FoundationDBBackupStatus, result *contract.FDBExpiryResult) {
	before := status.Expiry
	if result == nil || (before != nil && result.Turn <= before.Turn) {
		return
	}
	ended := metav1.NewTime(time.Unix(result.At, 0).UTC())
	status.Expiry = &fdbv1alpha1.BackupExpiryStatus{
		LastTime: ended, Reason: fdbv1alpha1.ExpiryReason(result.Reason),
		Message: fdb.Bound(result.Message, fdbbackup.MaxMessage), Turn: result.Turn,
	}
	switch {
	case result.Reason == fdbv1alpha1.ExpiryExpired:
		status.Expiry.LastExpired = &ended
	case before != nil:
		status.Expiry.LastExpired = before.LastExpired
	}
}

func plainExpiry(status *fdbv1alpha1.BackupExpiryStatus) *contract.FDBExpiryView {
	if status == nil {
		return nil
	}
	return &contract.FDBExpiryView{Turn: status.Turn, Reason: string(status.Reason), Message: status.Message}
}
