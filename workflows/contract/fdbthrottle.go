package contract

// KindFDBThrottle limits the first snapshots of a Kubernetes cluster. Its ID is FDBThrottleID. Input: FDBThrottleInput, no
// result.
var KindFDBThrottle = Kind{
	Workflow: "FDBSnapshotThrottle", Summary: "First snapshots of FoundationDB backups of", Queue: QueueFDB,
}

// What is said to the throttle, and by it.
const (
	// SignalSlot tells the throttle of a holder. Payload: FDBSlotRequest. Telling it again is harmless.
	SignalSlot = "slot"
	// SignalSlotGranted tells a backup that it has a slot. Payload: FDBSlotGrant.
	SignalSlotGranted = "slot-granted"
)

// The activities.
var (
	// SignalFDBThrottle signals the throttle, which it starts if need be.
	SignalFDBThrottle = Activity[FDBSlotRequest, None]{Name: "signal-fdb-throttle"}
	// FindFirstSnapshots returns the cluster's backups that are in their first snapshot, or about to start one, and those that wait
	// for a slot, as far as their objects tell.
	FindFirstSnapshots = Activity[FDBThrottleInput, FDBHolders]{
		"find-first-snapshots", "Find the backups that are in their first snapshot",
	}
)

// FDBThrottleID returns the workflow ID of a Kubernetes cluster's throttle of first snapshots.
func FDBThrottleID(cluster string) string { return cluster + "/fdb-snapshot-throttle" }

// FDBThrottleInput starts, and continues, the throttle of a Kubernetes cluster.
type FDBThrottleInput struct {
	Cluster string `json:"cluster"`
	// Found: the backups that were in their first snapshot before the throttle began are among the holders.
	Found bool `json:"found,omitempty"`
	// Holders have a slot; Waiting want one, in the order of their asking.
	Holders []FDBHolder `json:"holders,omitempty"`
	Waiting []FDBHolder `json:"waiting,omitempty"`
	// Carried is what else the throttle knows. FindFirstSnapshots is told the order of the namespaces.
	Carried Carried[string] `json:"carried,omitzero"`
}

// FDBSlotGrace is how long the slot of a holder whose workflow does not run is kept: as long as a start command that it asked
// for may still begin or run.
const FDBSlotGrace = FDBRequestWait + FDBCommandLimit

// FDBThrottleState answers QueryState.
type FDBThrottleState struct {
	// Limit is how many first snapshots may run at a time.
	Limit   int         `json:"limit"`
	Holders []FDBHolder `json:"holders,omitempty"`
	// Waiting are in the order of their grants, and Beyond is how many wait besides, as far as objects have told.
	Waiting []FDBHolder `json:"waiting,omitempty"`
	Beyond  int         `json:"beyond,omitempty"`
}

// FDBHolder is a backup that has, or wants, a slot.
type FDBHolder struct {
	// WorkflowID is the backup's; never a run's.
	WorkflowID string `json:"workflowId"`
	// Namespace is its object's: slots go round the namespaces. Empty for those that were only found, or asked an older worker.
	Namespace string `json:"namespace,omitempty"`
	// Since is when it asked or got its slot, in Unix seconds.
	Since int64 `json:"since"`
	// ClosedSince is when its workflow was first found not to run, in Unix seconds; 0 if it runs. Its slot is kept for a while:
	// a start command may still be on its way.
	ClosedSince int64 `json:"closedSince,omitempty"`
}

// FDBHolders are backups in their first snapshot, by the IDs of their workflows, and the first of those that wait for a slot.
type FDBHolders struct {
	WorkflowIDs []string    `json:"workflowIds,omitempty"`
	Waiting     []FDBHolder `json:"waiting,omitempty"`
	Beyond      *Beyond     `json:"beyond,omitempty"`
}

// FDBSlotRequest is what a backup tells the throttle.
type FDBSlotRequest struct {
	// Cluster is the Kubernetes cluster's ID.
	Cluster    string        `json:"cluster"`
	WorkflowID string        `json:"workflowId"`
	Namespace  string        `json:"namespace,omitempty"`
	Action     FDBSlotAction `json:"action"`
}

// FDBSlotAction is what a backup wants of the throttle.
type FDBSlotAction string

// The wishes.
const (
	// FDBSlotAcquire: it wants to start a first snapshot. One that has a slot is granted it again.
	FDBSlotAcquire FDBSlotAction = "acquire"
	// FDBSlotCount: it is in its first snapshot already, whoever started it, and counts whatever the limit.
	FDBSlotCount FDBSlotAction = "count"
	// FDBSlotRelease: it needs none (any more).
	FDBSlotRelease FDBSlotAction = "release"
)

// FDBSlotGrant is the payload of SignalSlotGranted.
type FDBSlotGrant struct{}
