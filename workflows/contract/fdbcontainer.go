package contract

import "time"

// KindFDBContainer guards one container, for all Kubernetes clusters that share a Temporal namespace. Its ID is FDBContainerID.
// Input: FDBContainerInput, no result. It answers QueryState with FDBContainerState.
var KindFDBContainer = Kind{Workflow: "FDBContainer", Summary: "Guard of container", Queue: QueueShared}

// The guard's Update, and its error.
const (
	// UpdateFDBContainer sends a request to the guard. Input: FDBContainerRequest, result: FDBContainerAnswer. A repeated request is
	// harmless.
	UpdateFDBContainer = "request"
	// ErrorFDBContainerInvalid is the type of the error that refuses an FDBContainerRequest which can never be answered. Not
	// retryable.
	ErrorFDBContainerInvalid = "FDBContainerInvalid"
)

// RequestFDBContainer sends a request to the guard, which it starts if need be.
var RequestFDBContainer = Activity[FDBContainerRequest, FDBContainerAnswer]{Name: "request-fdb-container"}

// FDBContainerID returns the workflow ID of a container's guard. container is host:port/bucket/path.
func FDBContainerID(container string) string { return bounded("fdb-container/"+container, MaxIDBytes) }

// FDBContainerSettling is how long after its start a guard grants no deletion, unless its first user has just made the
// container: Temporal's database may have been lost, and users must have had time to make themselves known again.
const FDBContainerSettling = 15 * time.Minute

// FDBContainerInput starts, and continues, a guard.
type FDBContainerInput struct {
	Container string `json:"container"`
	// Since is when the first run started, in Unix seconds; 0 at the start. Settled: all users are known.
	Since   int64              `json:"since,omitempty"`
	Settled bool               `json:"settled,omitempty"`
	Users   []FDBContainerUser `json:"users,omitempty"`
	// Holder is the workflow that may expire or delete now; nil if there is none.
	Holder *FDBContainerUser `json:"holder,omitempty"`
}

// FDBContainerUser is a workflow whose data are in a container, or that reads or changes it.
type FDBContainerUser struct {
	// WorkflowID is the user's; a run's ID is never used.
	WorkflowID string `json:"workflowId"`
	// Name is for people: Kubernetes cluster, namespace/name.
	Name string `json:"name"`
	// Cluster and Namespace are where it is: the Kubernetes cluster's ID, and its object's namespace. Its name is shown only to
	// users of the same cluster and namespace.
	Cluster   string `json:"cluster,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	// ReadsUntil is set for a restore: until then, in Unix seconds, nothing is expired or deleted.
	ReadsUntil int64 `json:"readsUntil,omitempty"`
	// Since is when a holder became it, in Unix seconds. Deletes: it may delete, not only expire.
	Since   int64 `json:"since,omitempty"`
	Deletes bool  `json:"deletes,omitempty"`
}

// FDBContainerAction is what a request to a guard is for.
type FDBContainerAction string

// The actions.
const (
	// FDBContainerUse: the container holds the user's data, or the user reads it (ReadsUntil).
	FDBContainerUse FDBContainerAction = "use"
	// FDBContainerLeave: the user no longer uses the container.
	FDBContainerLeave FDBContainerAction = "leave"
	// FDBContainerExpire and FDBContainerDelete: the user wants to expire or delete, alone, for the workflow in Of.
	FDBContainerExpire FDBContainerAction = "expire"
	FDBContainerDelete FDBContainerAction = "delete"
	// FDBContainerRelease: the holder has finished.
	FDBContainerRelease FDBContainerAction = "release"
)

// FDBContainerRequest is what a user requests from a guard.
type FDBContainerRequest struct {
	Container string             `json:"container"`
	User      FDBContainerUser   `json:"user"`
	Action    FDBContainerAction `json:"action"`
	// Of is, with Expire and Delete, the workflow ID of the backup whose data are expired or deleted: it does not count as another
	// user.
	Of string `json:"of,omitempty"`
	// Whole, with Delete: the object of Of is being deleted. If others use the container too, Of stops being a user and its data
	// stay: if several are deleted at a time, the last one deletes the data.
	Whole bool `json:"whole,omitempty"`
	// Fresh, with Use: the user is about to make the container. Nobody else can know it: its path has the time of this start.
	Fresh bool `json:"fresh,omitempty"`
}

// FDBContainerAnswer is the guard's answer.
type FDBContainerAnswer struct {
	// Held: the user may expire or delete now, until it sends FDBContainerRelease.
	Held bool `json:"held,omitempty"`
	// Busy says why the user does not hold the container: another holds or reads it, or the guard has not settled. The answer to
	// FDBContainerUse names a holder in it: the user is known from now on, nothing more is granted beside it, but what was granted
	// before may go on. The user requests again until Busy is empty.
	Busy string `json:"busy,omitempty"`
	// Others are the other users because of which a deletion is not granted, as far as the user may know of them.
	Others []string `json:"others,omitempty"`
}

// FDBContainerState answers QueryState.
type FDBContainerState struct {
	Users   []FDBContainerUser `json:"users,omitempty"`
	Holder  *FDBContainerUser  `json:"holder,omitempty"`
	Settled bool               `json:"settled,omitempty"`
}
