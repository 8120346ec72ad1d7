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
