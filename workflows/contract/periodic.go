package contract

// KindCollection is one garbage collection. A Schedule starts it every garbageCollectionPeriod of the policy. Input:
// CollectionInput, result: CollectionResult.
var KindCollection = Kind{Workflow: "GarbageCollection", ID: "garbage-collection", Summary: "Garbage collection", Pinned: true}

// CollectOrphans deletes what was made for objects of tenants that are gone.
var CollectOrphans = Activity[CollectionInput, CollectionResult]{
	"collect-orphans", "Delete what was made for objects that are gone",
}

// CollectionInput starts one garbage collection.
type CollectionInput struct {
	Cluster string `json:"cluster"`
	// Probe: the activity only returns what it waits for: it costs little, and deletes nothing.
	Probe bool `json:"probe,omitempty"`
}

// CollectionResult counts what a garbage collection has deleted, by kind.
type CollectionResult struct {
	Deleted []CollectedKind `json:"deleted,omitempty"`
	// Young counts orphans that are too young to be deleted; they are left for a later collection.
	Young int `json:"young,omitempty"`
	// HeldBack counts Velero Backups that are kept because Velero has not read a storage location of their tenant yet.
	HeldBack int `json:"heldBack,omitempty"`
	// Waiting says what the collection waits for; empty if it collected.
	Waiting string `json:"waiting,omitempty"`
}

// CollectedKind is how many objects of a kind were deleted.
type CollectedKind struct {
	Kind  string `json:"kind"`
	Count int    `json:"count"`
}

// KindSynchronization makes, once, the NonAdminBackups of Velero Backups that have none. A Schedule starts it every
// backupSyncPeriod of the policy. Input: ScheduledInput, result: SynchronizationResult.
var KindSynchronization = Kind{
	Workflow: "BackupSynchronization", ID: "backup-sync", Summary: "Backup synchronization", Pinned: true,
}

// SynchronizeBackups makes NonAdminBackups for what Velero has found in the object stores.
var SynchronizeBackups = Activity[ScheduledInput, SynchronizationResult]{
	"synchronize-backups", "Make NonAdminBackups for what Velero has found in the object stores",
}

// SynchronizationResult counts what a synchronization has done.
type SynchronizationResult struct {
	// Made counts the NonAdminBackups that were created.
	Made int `json:"made,omitempty"`
	// Refused counts those that the API server refused (a quota, an admission webhook). The next synchronization tries again.
	Refused int `json:"refused,omitempty"`
	// Untrusted counts Velero Backups, and backups in tenants' buckets, that do not prove whose they are.
	Untrusted int `json:"untrusted,omitempty"`
	// Noted counts NonAdminBackups that were released with their data left behind, and entered in the ledger.
	Noted int `json:"noted,omitempty"`
	// EntriesRemoved counts entries removed from the ledger because their data are gone.
	EntriesRemoved int `json:"forgotten,omitempty"`
	// Brought counts Velero Backups created for what lies in tenants' buckets, Removed those deleted since their files are gone.
	Brought int `json:"brought,omitempty"`
	Removed int `json:"removed,omitempty"`
	// Withheld counts backups in tenants' buckets that Velero does not get to see, since their files are too large.
	Withheld int `json:"withheld,omitempty"`
	// Unread counts tenants' buckets that could not be read.
	Unread int `json:"unread,omitempty"`
	// Waiting names an administrator's storage location that Velero has not read yet; empty when there is none.
	Waiting string `json:"waiting,omitempty"`
	// More: an activity has reached its limit, and there is more to do.
	More bool `json:"more,omitempty"`
}

// Add returns the sum with another activity's result of the same synchronization. Only changes are summed up.
func (r SynchronizationResult) Add(next SynchronizationResult) SynchronizationResult {
	next.Made += r.Made
	next.Noted += r.Noted
	next.EntriesRemoved += r.EntriesRemoved
	next.Brought += r.Brought
	next.Removed += r.Removed
	return next
}

// ScheduleID returns `<cluster>/<kind>`. It is the ID of the Schedule that starts a kind's workflows, one per Kubernetes cluster,
// and, with the time appended by Temporal, of each workflow that it starts.
func ScheduleID(cluster string, kind Kind) string { return cluster + "/" + kind.ID }

// ScheduledInput is the input of every workflow that a Schedule starts for a cluster. A collection reads it as a CollectionInput.
type ScheduledInput struct {
	Cluster string `json:"cluster"`
}
