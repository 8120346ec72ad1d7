package contract

import "time"

// KindFDBCluster owns a FoundationDB cluster. Its ID is FDBClusterID. Input: FDBClusterInput, no result.
var KindFDBCluster = Kind{Workflow: "FDBCluster", Summary: "Owner of FoundationDB cluster", Queue: QueueShared}

// The owner's Update, and its error.
const (
	// UpdateFDBCluster sends a request to the owner. Input: FDBCommandRequest, result: FDBCommandAnswer. A repeated request, with
	// the same update ID or with another one, is harmless: a command that is already done is not run again.
	UpdateFDBCluster = "request"
	// ErrorFDBRequestInvalid is the type of the error that refuses an FDBCommandRequest which can never be answered. Not
	// retryable.
	ErrorFDBRequestInvalid = "FDBRequestInvalid"
)

// RequestFDBCommand sends a request to the owner, which it starts if need be.
var RequestFDBCommand = Activity[FDBCommandRequest, FDBCommandAnswer]{Name: "request-fdb-command"}

// Limits of a requested command. The requester relies on them: after FDBRequestWait + FDBCommandLimit none of its commands begins
// or runs any more.
const (
	// FDBRequestWait is how long after the request a command may begin: FDBCommandRequest.Until is the time of the request and this.
	FDBRequestWait = 5 * time.Minute
	// FDBCommandStart is how long a command waits for a worker, FDBCommandRun how long it may run then.
	FDBCommandStart = time.Minute
	FDBCommandRun   = 2 * time.Minute
	// FDBCommandLimit is how long a command may take once the owner has begun it.
	FDBCommandLimit = FDBCommandStart + FDBCommandRun
	// FDBRequestTimeout limits an attempt of RequestFDBCommand: the owner has answered before.
	FDBRequestTimeout = FDBRequestWait + FDBCommandLimit + time.Minute
)

// FDBClusterID returns the workflow ID of a FoundationDB cluster's owner. cluster is the description:id of its cluster file,
// which stays the same when its coordinators change.
func FDBClusterID(cluster string) string { return bounded("fdb/"+cluster, MaxIDBytes) }

// FDBClusterInput starts, and continues, the owner of a FoundationDB cluster.
type FDBClusterInput struct {
	// Cluster is its description:id.
	Cluster string `json:"cluster"`
	// Members are the backups that are not stopped, in the order of their first requests.
	Members []FDBMember `json:"members,omitempty"`
	// Since is when the first run started, in Unix seconds; 0 at the start. The agents are not paused until every member has had
	// time to send its request.
	Since int64 `json:"since,omitempty"`
}

// FDBMember is a backup that has a say in whether the agents are paused.
type FDBMember struct {
	// WorkflowID is the backup's; a run's ID is never used.
	WorkflowID string `json:"workflowId"`
	// Name is for people: Kubernetes cluster, namespace/name.
	Name string `json:"name"`
	// Paused: the member wants the agents paused.
	Paused bool `json:"paused,omitempty"`
}

// FDBClusterState answers QueryState.
type FDBClusterState struct {
	Members []FDBMember `json:"members,omitempty"`
	// Running is the command that runs now, and Requester the name of the member that requested it; nil if none runs.
	Running   *FDBCommand `json:"running,omitempty"`
	Requester string      `json:"requester,omitempty"`
	// Waiting is how many commands wait for their turn.
	Waiting int `json:"waiting,omitempty"`
}

// FDBCommandRequest is what a backup or restore requests from the owner of its FoundationDB cluster.
type FDBCommandRequest struct {
	// Cluster is the FoundationDB cluster's description:id.
	Cluster string `json:"cluster"`
	// Member is the requester, and what it wants of the agents.
	Member FDBMember `json:"member"`
	// Leave: the requester wants nothing of the agents any more; it is stopped or deleted.
	Leave bool `json:"leave,omitempty"`
	// Command is the command to run; nil only makes the member known to the owner.
	Command *FDBCommand `json:"command,omitempty"`
	// Queue is where the command's activity runs: the requester's FDBTaskQueue.
	Queue string `json:"queue,omitempty"`
	// Until is when, in Unix seconds, the requester has given up waiting: a command is not begun after it.
	Until int64 `json:"until,omitempty"`
}

// FDBCommandAnswer is the owner's answer.
type FDBCommandAnswer struct {
	// Opposed are the names of the members that want the opposite of what the requester wants of the agents.
	Opposed []string `json:"opposed,omitempty"`
	// Later: the command was not run, and may be requested again: it was too late, too early to pause, or opposed.
	Later bool `json:"later,omitempty"`
	// Outcome is the command's; nil if none was run.
	Outcome *FDBOutcome `json:"outcome,omitempty"`
}

// FDBOperation is a command of fdbbackup that changes something.
type FDBOperation string

// The operations.
const (
	FDBStart  FDBOperation = "start"
	FDBModify FDBOperation = "modify"
	FDBAbort  FDBOperation = "abort"
	FDBPause  FDBOperation = "pause"
	FDBResume FDBOperation = "resume"
)

// FDBCommand is a command to run for a backup. Everything else it needs is read from the object when it runs.
type FDBCommand struct {
	Ref       ObjectRef    `json:"ref"`
	Operation FDBOperation `json:"operation"`
	// Generation is that of the spec for which it was decided; the command is not run for another one. Abort ignores it.
	Generation int64 `json:"generation,omitempty"`
	// Tag is the backup's; pause and resume have none.
	Tag string `json:"tag,omitempty"`
	// URL is where a start writes, where a modified backup is to write, or where the backup to abort writes.
	URL string `json:"url,omitempty"`
	// Next is the URL of the backup that replaces the one to abort: nothing is aborted if a backup cannot be started there, as far
	// as can be found out before.
	Next string `json:"next,omitempty"`
}

// FDBOutcome is the result of a command.
type FDBOutcome struct {
	// Done: the state is what the command is for, no matter who brought it about.
	Done bool `json:"done,omitempty"`
	// Stale: the state on which the decision was based has changed; inspect again.
	Stale bool `json:"undue,omitempty"`
	// Failure says why it is not done.
	Failure *FDBFailure `json:"failure,omitempty"`
	// NoAgents: start was accepted, and the tool reports that no agent answers.
	NoAgents bool `json:"noAgents,omitempty"`
}
