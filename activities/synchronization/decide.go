package synchronization

import (
	"strings"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/buckets"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/ledger"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/policy/backupspec"
	"holdfast.dev/holdfast/k8s/velero"
)

// StateAnnotation on a Velero Backup records what is known of its NonAdminBackup: `made/<uid>` or `released/<uid>`, with the
// UID of the Velero Backup itself. A Backup synced from a bucket has another UID, so an annotation from there does not count.
const StateAnnotation = "holdfast.dev/nab-state"

// States of StateAnnotation.
const (
	StateMade     = "made"
	StateReleased = "released"
)

// State is the value of StateAnnotation, empty if there is none that counts.
func State(made client.Object) string {
	state, uid, _ := strings.Cut(made.GetAnnotations()[StateAnnotation], "/")
	if uid == "" || uid != string(made.GetUID()) {
		return ""
	}
	return state
}

// SetState sets StateAnnotation in memory.
func SetState(made client.Object, state string) {
	annotations := made.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[StateAnnotation] = state + "/" + string(made.GetUID())
	made.SetAnnotations(annotations)
}

// Action is the step for a Velero Backup without a NonAdminBackup.
type Action string

// The actions.
const (
	// Leave it: it is not finished, or does not belong to a tenant.
	Leave Action = "leave"
	// Distrust it: it names an owner that its storage location does not have, or cannot be offered.
	Distrust Action = "distrust"
	// Make a NonAdminBackup.
	Make Action = "make"
	// Note in the ledger that the NonAdminBackup was released without an entry.
	Note Action = "note"
	// Mark the Velero Backup as entered in the ledger.
	Mark Action = "mark"
	// Keep it as it is: it is entered and marked.
	Keep Action = "keep"
)

// Decide returns the step for a Velero Backup whose NonAdminBackup does not exist. location is the one that holds it, nil if
// there is none.
//
// A Backup that was made here, and not synced by Velero, had a NonAdminBackup: if that is gone, it was released. The same is
// true for a Backup for which a NonAdminBackup was made. If its entry is gone from the ledger, an administrator has removed it:
// the tenant is to have the backup again.
func Decide(made *velerov1.Backup, location *Location, entered bool) Action {
	key, ok := owner.Backup.Proven(made)
	done := velero.Usable(made.Status.Phase)
	switch {
	case !made.DeletionTimestamp.IsZero(), location == nil, !done, made.Status.CompletionTimestamp == nil, buckets.Pending(made):
		return Leave
	case !ok, !location.Holds(key.Namespace), !backupspec.Fits(&made.Spec):
		return Distrust
	}
	state := State(made)
	switch {
	case entered && state == StateReleased:
		return Keep
	case entered:
		return Mark
	case state == StateReleased:
		return Make
	case state == StateMade, !broughtBack(made):
		return Note
	}
	return Make
}

// broughtBack: the object is younger than the backup's end, so Velero's synchronization has made it.
func broughtBack(made *velerov1.Backup) bool {
	return made.CreationTimestamp.After(made.Status.CompletionTimestamp.Time)
}

// NewBackup builds the NonAdminBackup for a Velero Backup for which Decide returns Make. Labels, annotations and deletion
// requests of the store are not copied, but for what says that it is a run of a plan: see OfPlan.
func NewBackup(made *velerov1.Backup, location *Location) *oadpv1alpha1.NonAdminBackup {
	key, _ := owner.Backup.Proven(made)
	spec := made.Spec.DeepCopy()
	spec.StorageLocation = location.NaBSL
	spec.IncludedNamespaces, spec.ExcludedNamespaces = []string{key.Namespace}, nil
	spec.IncludedClusterScopedResources, spec.VolumeSnapshotLocations = nil, nil
	spec.Hooks = velerov1.BackupHooks{}
	return &oadpv1alpha1.NonAdminBackup{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace, Name: key.Name,
			Labels: owner.SyncedLabels(made.Name),
		},
		Spec: oadpv1alpha1.NonAdminBackupSpec{BackupSpec: spec},
	}
}

// NewEntry is the ledger entry for a Velero Backup.
func NewEntry(made *velerov1.Backup, reason string, now time.Time) ledger.Entry {
	key, _ := owner.Backup.Hint(made)
	return ledger.Entry{
		Namespace: key.Namespace, Name: key.Name, Location: made.Spec.StorageLocation, Reason: reason,
		At: now.UTC().Truncate(time.Second),
	}
}

// syncAfter is how long after a release Velero's sync of the store must have started to count.
const syncAfter = 10 * time.Minute

// Forgettable reports whether the data of an entry, whose Velero Backup does not exist, are gone from the store: Velero has
// synced since. The data of a missing location may come back with it.
func Forgettable(entry ledger.Entry, locations map[string]*Location) bool {
	l := locations[entry.Location]
	return l != nil && l.Available && !entry.At.IsZero() && l.ListedAt.After(entry.At.Add(syncAfter))
}
