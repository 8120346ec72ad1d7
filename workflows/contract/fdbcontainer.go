package contract

import "time"

// KindFDBContainer guards one container, for all Kubernetes clusters that share a Temporal namespace. Its ID is FDBContainerID.
// Input: FDBContainerInput, no result. It answers QueryState with FDBContainerState.
var KindFDBContainer = Kind{Workflow: "FDBContainer", Summary: "Guard of container", Queue: QueueShared}

// What is said to the guard.
const (
	// UpdateFDBContainer asks it. Input: FDBContainerRequest, result: FDBContainerAnswer. Asking again is harmless.
	UpdateFDBContainer = "request"
	// ErrorFDBContainerInvalid is the type of the error that refuses an FDBContainerRequest which can never be answered. Not
	// retryable.
	ErrorFDBContainerInvalid = "FDBContainerInvalid"
)

// The activities.
var (
	// RequestFDBContainer asks the guard, which it starts if need be.
	RequestFDBContainer = Activity[FDBContainerRequest, FDBContainerAnswer]{Name: "request-fdb-container"}
)

// FDBContainerID returns the workflow ID of a container's guard. container is host:port/bucket/path.
func FDBContainerID(container string) string { return "fdb-container/" + container }

// FDBContainerSettling is how long after its start a guard lets nobody delete, unless its first user has just made the container:
// who uses it may have been lost with Temporal's database, and must have had the time to say so.
const FDBContainerSettling = 15 * time.Minute

// FDBContainerInput starts, and continues, a guard.
type FDBContainerInput struct {
	Container string `json:"container"`
	// Since is when the first run started, in Unix seconds; 0 at the start. Settled: no user can have been lost.
	Since   int64              `json:"since,omitempty"`
	Settled bool               `json:"settled,omitempty"`
	Users   []FDBContainerUser `json:"users,omitempty"`
	// Holder is who expires or deletes; nil if nobody does.
	Holder *FDBContainerUser `json:"holder,omitempty"`
}

// FDBContainerUser is somebody whose data are in a container, or who reads or changes it.
type FDBContainerUser struct {
	// WorkflowID is never a run's.
	WorkflowID string `json:"workflowId"`
	// Name is how people call it: Kubernetes cluster, namespace/name.
	Name string `json:"name"`
	// Cluster and Namespace are where it is: the Kubernetes cluster's ID, and its object's namespace. Its name is shown only to
	// users of the same cluster and namespace.
	Cluster   string `json:"cluster,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	// ReadsUntil is set for a restore: until then, in Unix seconds, nothing is expired or deleted.
	ReadsUntil int64 `json:"readsUntil,omitempty"`
	// Since is when a holder got it, in Unix seconds. Deletes: it may delete, not only expire.
	Since   int64 `json:"since,omitempty"`
	Deletes bool  `json:"deletes,omitempty"`
}

// FDBContainerAction is what somebody wants of a container.
type FDBContainerAction string

// The wishes.
const (
	// FDBContainerUse: the container holds its data, or is read by it (ReadsUntil).
	FDBContainerUse FDBContainerAction = "use"
	// FDBContainerLeave: it uses it no more.
	FDBContainerLeave FDBContainerAction = "leave"
	// FDBContainerExpire and FDBContainerDelete: it wants to expire or delete, alone. Of is the workflow for which it does.
	FDBContainerExpire FDBContainerAction = "expire"
	FDBContainerDelete FDBContainerAction = "delete"
	// FDBContainerRelease: it is done with that.
	FDBContainerRelease FDBContainerAction = "release"
)

// FDBContainerRequest is what somebody asks of a guard.
type FDBContainerRequest struct {
	Container string             `json:"container"`
	User      FDBContainerUser   `json:"user"`
	Action    FDBContainerAction `json:"action"`
	// Of is, with Expire and Delete, the workflow ID of the user for whom it is done: that one is no other user.
	Of string `json:"of,omitempty"`
	// Whole, with Delete: the object of Of is being deleted. If others use the container too, it is left to them: Of is no user
	// any more, so that of several that are deleted at a time the last one deletes the data.
	Whole bool `json:"whole,omitempty"`
	// Fresh, with Use: who asks is about to make the container, whose path has the time of this start; nobody else can know it.
	Fresh bool `json:"fresh,omitempty"`
}

// FDBContainerAnswer is the guard's answer.
type FDBContainerAnswer struct {
	// Held: who asked may expire or delete now, until it says release.
	Held bool `json:"held,omitempty"`
	// Busy says who holds or reads it, or that the guard has not settled, when that is why it is not Held. To Use it says who
	// holds it: the user is enrolled, and nothing is granted beside it, but what was granted before may go on until it is asked
	// again.
	Busy string `json:"busy,omitempty"`
	// Others are the other users, as far as who asked may know of them, when they are why it is not Held for a deletion.
	Others []string `json:"others,omitempty"`
}

// FDBContainerState answers QueryState.
type FDBContainerState struct {
	Users   []FDBContainerUser `json:"users,omitempty"`
	Holder  *FDBContainerUser  `json:"holder,omitempty"`
	Settled bool               `json:"settled,omitempty"`
}
