package contract

// KindFDBThrottle limits the first snapshots of a Kubernetes cluster. Its ID is FDBThrottleID. Input: FDBThrottleInput, no
// result.
var KindFDBThrottle = Kind{
	Workflow: "FDBSnapshotThrottle", Summary: "First snapshots of FoundationDB backups of", Queue: QueueFDB,
}

// Signals to the throttle, and by it.
const (
	// SignalSlot carries a backup's request. Payload: FDBSlotRequest. Sending it again is harmless.
	SignalSlot = "slot"
	// SignalSlotGranted reports to a backup that it has a slot. Payload: FDBSlotGrant.
	SignalSlotGranted = "slot-granted"
)

// The activities.
var (
	// SignalFDBThrottle signals the throttle, which it starts if need be.
	SignalFDBThrottle = Activity[FDBSlotRequest, None]{Name: "signal-fdb-throttle"}
	// FindFirstSnapshots lists the cluster's backups that are in their first snapshot, or about to start one, and those that wait
	// for a slot, as their objects say.
	FindFirstSnapshots = Activity[FDBThrottleInput, FDBHolders]{
		"find-first-snapshots", "Find the backups that are in their first snapshot",
	}
)

// FDBThrottleID returns the workflow ID of a Kubernetes cluster's throttle of first snapshots.
func FDBThrottleID(cluster string) string { return cluster + "/fdb-snapshot-throttle" }

// FDBThrottleInput starts, and continues, the throttle of a Kubernetes cluster.
type FDBThrottleInput struct {
	Cluster string `json:"cluster"`
	// Found: the objects have been listed since the first start.
	Found bool `json:"found,omitempty"`
	// Holders have a slot; Waiting want one, in the order of their requests.
	Holders []FDBHolder `json:"holders,omitempty"`
	Waiting []FDBHolder `json:"waiting,omitempty"`
	// Carried is what else the throttle knows. FindFirstSnapshots reads the order of the namespaces from it.
	Carried Carried[string] `json:"carried,omitzero"`
}

// FDBSlotGrace is how long the slot of a holder whose workflow does not run is kept: a start command that it requested may
// begin or run for so long.
const FDBSlotGrace = FDBRequestWait + FDBCommandLimit

// FDBThrottleState answers QueryState.
type FDBThrottleState struct {
	// Limit is how many first snapshots may run at a time.
	Limit   int         `json:"limit"`
	Holders []FDBHolder `json:"holders,omitempty"`
	// Waiting are in the order of their grants, and Beyond is how many more wait, as of the last listing of objects.
	Waiting []FDBHolder `json:"waiting,omitempty"`
	Beyond  int         `json:"beyond,omitempty"`
}

// FDBHolder is a backup that has, or wants, a slot.
type FDBHolder struct {
	// WorkflowID is the backup's; a run's ID is never used.
	WorkflowID string `json:"workflowId"`
	// Namespace is its object's: slots go round the namespaces. Empty for a holder that was only found.
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

// FDBSlotRequest is what a backup sends to the throttle.
type FDBSlotRequest struct {
	// Cluster is the Kubernetes cluster's ID.
	Cluster    string        `json:"cluster"`
	WorkflowID string        `json:"workflowId"`
	Namespace  string        `json:"namespace,omitempty"`
	Action     FDBSlotAction `json:"action"`
}

// FDBSlotAction is what a backup wants of the throttle.
type FDBSlotAction string

// The actions.
const (
	// FDBSlotAcquire: it wants to start a first snapshot. One that has a slot is granted it again.
	FDBSlotAcquire FDBSlotAction = "acquire"
	// FDBSlotCount: it is in its first snapshot already, no matter who started it, and counts even above the limit.
	FDBSlotCount FDBSlotAction = "count"
	// FDBSlotRelease: it needs none (any more).
	FDBSlotRelease FDBSlotAction = "release"
)

// FDBSlotGrant is the payload of SignalSlotGranted.
type FDBSlotGrant struct{}
