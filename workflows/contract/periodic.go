package contract

// KindCollection is one garbage collection. A Schedule starts it every garbageCollectionPeriod of the policy. Input:
// CollectionInput, result: CollectionResult.
var KindCollection = Kind{Workflow: "GarbageCollection", ID: "garbage-collection", Summary: "Garbage collection", Pinned: true}

// The activities.
var (
	// CollectOrphans deletes what was made for objects of tenants that are gone.
	CollectOrphans = Activity[CollectionInput, CollectionResult]{"collect-orphans", "Delete what was made for objects that are gone"}
)

// CollectionInput starts one garbage collection.
type CollectionInput struct {
	Cluster string `json:"cluster"`
	// Probe asks the activity only what is waited for: it costs little, and deletes nothing.
	Probe bool `json:"probe,omitempty"`
}

// CollectionResult counts what a garbage collection has deleted, by kind.
type CollectionResult struct {
	Deleted []CollectedKind `json:"deleted,omitempty"`
	// Young orphans are left for the next time.
	Young int `json:"young,omitempty"`
	// HeldBack Velero Backups are left while Velero has not looked into a storage location of their tenant.
	HeldBack int `json:"heldBack,omitempty"`
	// Waiting says for what nothing was collected; empty if it was.
	Waiting string `json:"waiting,omitempty"`
}

// CollectedKind is how many objects of a kind were deleted.
type CollectedKind struct {
	Kind  string `json:"kind"`
	Count int    `json:"count"`
}

// KindSynchronization makes, once, the NonAdminBackups of Velero Backups that have none. A Schedule starts it every
// backupSyncPeriod of the policy. Input: SynchronizationInput, result: SynchronizationResult.
var KindSynchronization = Kind{
	Workflow: "BackupSynchronization", ID: "backup-sync", Summary: "Backup synchronization", Pinned: true,
}

// The activities.
var (
	// SynchronizeBackups makes NonAdminBackups for what Velero has found in the object stores.
	SynchronizeBackups = Activity[SynchronizationInput, SynchronizationResult]{
		"synchronize-backups", "Make NonAdminBackups for what Velero has found in the object stores",
	}
)

// SynchronizationInput starts one synchronization.
type SynchronizationInput struct {
	Cluster string `json:"cluster"`
}

// SynchronizationResult counts what a synchronization has done.
type SynchronizationResult struct {
	// Made NonAdminBackups.
	Made int `json:"made,omitempty"`
	// Refused NonAdminBackups: the API server did not take them (a quota, an admission webhook). The next one tries again.
	Refused int `json:"refused,omitempty"`
	// Untrusted Velero Backups, which do not say truly whose they are.
	Untrusted int `json:"untrusted,omitempty"`
	// Noted: NonAdminBackups found to be released with their data left behind, and entered in the ledger.
	Noted int `json:"noted,omitempty"`
	// Forgotten entries of the ledger, whose data are gone.
	Forgotten int `json:"forgotten,omitempty"`
	// Waiting names an administrator's storage location that Velero has not looked into yet; empty when there is none.
	Waiting string `json:"waiting,omitempty"`
	// More: the limit of one activity was reached after something was done, there is more to do.
	More bool `json:"more,omitempty"`
}

// Add adds what another activity of the same synchronization has done. What is counted without being changed is not added.
func (r SynchronizationResult) Add(next SynchronizationResult) SynchronizationResult {
	next.Made += r.Made
	next.Noted += r.Noted
	next.Forgotten += r.Forgotten
	return next
}

// ScheduleID returns `<cluster>/<kind>`. It is the ID of the Schedule that starts a kind's workflows, one per Kubernetes cluster,
// and, with the time appended by Temporal, of each workflow that it starts.
func ScheduleID(cluster string, kind Kind) string { return cluster + "/" + kind.ID }

// ScheduledInput is what a Schedule gives to whatever workflow it starts.
type ScheduledInput struct {
	Cluster string `json:"cluster"`
}
