package contract

import "time"

// KindHeartbeat is the workflow that keeps, in its memo, what a Kubernetes cluster has last said of itself: one per cluster,
// open as long as the cluster is served. `holdfast fleet` lists them. Input: HeartbeatInput.
var KindHeartbeat = Kind{Workflow: "ClusterHeartbeat", ID: "heartbeat", Summary: "Heartbeat of Kubernetes cluster"}

// InspectWorker returns the version of the worker, and whether the API server answers it. An API server that does not is part of
// the result, and no error.
var InspectWorker = Activity[HeartbeatInput, WorkerState]{
	"inspect-worker", "Read the versions of the worker and of Kubernetes",
}

const (
	// SignalHeartbeat carries a WatcherState. The leading watcher sends one every HeartbeatInterval, and starts the workflow with
	// it.
	SignalHeartbeat = "heartbeat"
	// MemoHeartbeat is the field of the workflow's memo that holds the Heartbeat. It is encrypted as payloads are.
	MemoHeartbeat = "heartbeat"
	// HeartbeatInterval is the time between two heartbeats of a cluster.
	HeartbeatInterval = time.Minute
)

// HeartbeatID returns `<cluster>/heartbeat`.
func HeartbeatID(cluster string) string { return cluster + "/" + KindHeartbeat.ID }

// HeartbeatInput starts the workflow.
type HeartbeatInput struct {
	Cluster string `json:"cluster"`
	// ClusterUID is WatcherState.ClusterUID of earlier runs, to which the cluster ID belongs; empty in the first run.
	ClusterUID string `json:"clusterUID,omitempty"`
}

// Heartbeat is what is known of a cluster.
type Heartbeat struct {
	// At is when the watcher sent it, or when the workflow received it if that was earlier by the clocks.
	At      time.Time    `json:"at"`
	Watcher WatcherState `json:"watcher"`
	Worker  WorkerState  `json:"worker"`
}

// WatcherState is what the leading watcher says, from its caches.
type WatcherState struct {
	// Sent is when, by the watcher's clock.
	Sent time.Time `json:"sent,omitzero"`
	// Version is that of its program.
	Version string `json:"version"`
	// ClusterUID is the UID of its Kubernetes cluster, see k8s.ClusterUID; earlier versions send none.
	ClusterUID string `json:"clusterUID,omitempty"`
	// Problem says why Holdfast does not act in the cluster, or not by the policy that is there; empty if it does.
	Problem string `json:"problem,omitempty"`
	// Unfinished counts backups, restores and drills that are under way or wait, and Oldest is the one created first of them; nil if
	// there is none.
	Unfinished int               `json:"unfinished"`
	Oldest     *UnfinishedObject `json:"oldest,omitempty"`
	// ObjectivesMissed counts BackupPlans and FoundationDBBackups whose newest good backup is too old, VerificationsMissed
	// BackupPlans whose newest verified one is.
	ObjectivesMissed    int `json:"objectivesMissed"`
	VerificationsMissed int `json:"verificationsMissed"`
	// Stalled counts backups and restores that are VeleroStalled.
	Stalled int `json:"stalled"`
	// PendingApprovals counts storage locations that wait for an administrator.
	PendingApprovals int `json:"pendingApprovals"`
}

// OfAnotherCluster reports whether it comes from another Kubernetes cluster than that of a UID. An unknown one, which is empty,
// is no other.
func (s *WatcherState) OfAnotherCluster(uid string) bool {
	return s.ClusterUID != "" && uid != "" && s.ClusterUID != uid
}

// UnfinishedObject is an object of a tenant's.
type UnfinishedObject struct {
	Kind      string    `json:"kind"`
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	Created   time.Time `json:"created"`
}

// WorkerState is what a worker says.
type WorkerState struct {
	// Version is that of its program, and Build its build ID, if it uses worker versioning.
	Version string `json:"version"`
	Build   string `json:"build,omitempty"`
	// Kubernetes is the API server's version.
	Kubernetes string `json:"kubernetes,omitempty"`
	// Problem says why the API server does not answer it.
	Problem string `json:"problem,omitempty"`
}
