package contract

// KindFDBExpiryQueue keeps the queue of expirations of a Kubernetes cluster. Its ID is FDBExpiryQueueID. Input:
// FDBExpiryQueueInput, no result. It answers QueryState with FDBExpiryQueueState.
var KindFDBExpiryQueue = Kind{
	Workflow: "FDBExpiryQueue", Summary: "Expirations and deletions of FoundationDB backups of", Queue: QueueFDB,
}

// Signals and Updates of the queue of expirations, and its error.
const (
	// SignalExpiryEntry says what a backup wants of the queue. Payload: FDBQueueRequest. Sending it again is harmless.
	SignalExpiryEntry = "entry"
	// SignalExpiryTurn reports how far a turn is. Payload: FDBTurnReport. Sending it again is harmless.
	SignalExpiryTurn = "turn"
	// UpdateExpireNow puts a backup first, once, regardless of the minimum interval. Input: FDBQueueName, result: TurnAnswer.
	UpdateExpireNow = "expire-now"
	// UpdateRemoveEntry removes a backup from the queue until it asks again. Input: FDBQueueName, result: TurnAnswer.
	UpdateRemoveEntry = "remove"
	// UpdateSetExpiryLimit sets how many turns may run at a time; 0 restores the worker's flag. Input: FDBQueueLimit, result:
	// TurnAnswer.
	UpdateSetExpiryLimit = "set-limit"
	// ErrorFDBQueueInvalid is the type of the error that refuses an Update which can never be carried out. Not retryable.
	ErrorFDBQueueInvalid = "FDBQueueInvalid"
)

// The activities.
var (
	// SignalFDBExpiryQueue signals the queue, which it starts if need be.
	SignalFDBExpiryQueue = Activity[FDBQueueRequest, None]{Name: "signal-fdb-expiry-queue"}
	// StartFDBExpiry starts the turn's workflow. It succeeds if the workflow runs already. An error that is not retryable says that
	// Temporal will never accept the start.
	StartFDBExpiry = Activity[FDBExpiryInput, None]{Name: "start-fdb-expiry"}
	// FindFDBExpiries lists the backups and pods of the cluster; its input has the order of the namespaces. It refills a queue that
	// Temporal has lost, and keeps it from giving a turn while a pod of that backup runs.
	FindFDBExpiries = Activity[FDBExpiryQueueInput, FDBExpiriesFound]{
		"find-fdb-expiries", "Find the backups that expire or are deleted",
	}
)

// FDBExpiryQueueID returns the workflow ID of a Kubernetes cluster's queue of expirations.
func FDBExpiryQueueID(cluster string) string { return cluster + "/fdb-expiry-queue" }

// FDBJob is what a turn does.
type FDBJob string

// The jobs.
const (
	// FDBJobNone: the backup wants no turn, and has no entry.
	FDBJobNone FDBJob = ""
	// FDBJobExpire deletes what is older than the backup's policy.
	FDBJobExpire FDBJob = "expire"
	// FDBJobDelete deletes all data of a backup whose object is being deleted.
	FDBJobDelete FDBJob = "delete"
)

// The lanes of the queue: deletions come first, and an expiration after four of them.
const (
	LaneDelete = iota
	LaneExpire
	FDBQueueLanes
)

// Lane returns the lane in which a job waits.
func (j FDBJob) Lane() int {
	if j == FDBJobDelete {
		return LaneDelete
	}
	return LaneExpire
}

// FDBExpiryQueueInput starts, and continues, the queue of a Kubernetes cluster.
type FDBExpiryQueueInput struct {
	Cluster string `json:"cluster"`
	// Found: the objects and pods have been listed since the first start.
	Found bool `json:"found,omitempty"`
	// Entries are in the order of their requests; an entry whose turn has begun is at the end. Turns are those that run; their
	// backups have an entry too, unless it was removed.
	Entries []FDBQueueEntry `json:"entries,omitempty"`
	Turns   []FDBTurn       `json:"turns,omitempty"`
	// Limit is what UpdateSetExpiryLimit has set; 0 if the flag counts.
	Limit int `json:"limit,omitempty"`
	// Carried is what else the queue knows: of deletions in lane LaneDelete, of expirations in lane LaneExpire. FindFDBExpiries
	// reads the order of the namespaces from it.
	Carried Carried[ObjectRef] `json:"carried,omitzero"`
	// Named are backups whose entries FindFDBExpiries returns too, wherever they stand.
	Named []FDBQueueName `json:"named,omitempty"`
}

// FDBQueueEntry is a backup's place in the queue.
type FDBQueueEntry struct {
	Ref ObjectRef `json:"ref"`
	Job FDBJob    `json:"job"`
	// First: an operator has put it first. It has its next turn before all others.
	First bool `json:"first,omitempty"`
	// NotBefore is the earliest begin of its next turn, in Unix seconds.
	NotBefore int64 `json:"notBefore,omitempty"`
	// Last is when its last turn began, in Unix seconds, and Outcome how that ended; empty before the first.
	Last    int64          `json:"last,omitempty"`
	Outcome FDBTurnOutcome `json:"outcome,omitempty"`
}

// FDBTurn is a turn that runs.
type FDBTurn struct {
	Ref ObjectRef `json:"ref"`
	Job FDBJob    `json:"job"`
	// Turn is when it began, in Unix seconds. It is a part of its pods' names.
	Turn int64 `json:"turn"`
	// Closing: nothing of it but pods in termination is left. It does not count against the limit, and blocks its own backup.
	Closing bool `json:"closing,omitempty"`
	// ClosedSince is when its workflow was first found closed without a report of its end, in Unix seconds; 0 if it runs.
	ClosedSince int64 `json:"closedSince,omitempty"`
}

// FDBQueueRequest is what a backup wants of the queue.
type FDBQueueRequest struct {
	// Cluster is the Kubernetes cluster's ID.
	Cluster string    `json:"cluster"`
	Ref     ObjectRef `json:"ref"`
	// Job is what it wants; FDBJobNone removes its entry.
	Job FDBJob `json:"job,omitempty"`
}

// FDBTurnOutcome is how a turn ended.
type FDBTurnOutcome string

// The outcomes.
const (
	// FDBTurnDone: the job is done.
	FDBTurnDone FDBTurnOutcome = "Done"
	// FDBTurnRefused: FoundationDB refuses to expire, because too little would remain restorable; a normal result.
	FDBTurnRefused FDBTurnOutcome = "Refused"
	// FDBTurnNothing: there is nothing to expire or delete.
	FDBTurnNothing FDBTurnOutcome = "NothingToDo"
	// FDBTurnGone: the object is gone. It has no further turn.
	FDBTurnGone FDBTurnOutcome = "Gone"
	// FDBTurnNotYet: another workflow holds or reads the container, or the database does not answer. It is retried after
	// --fdb-expiry-retry-interval.
	FDBTurnNotYet FDBTurnOutcome = "NotYet"
	// FDBTurnFailed: the pod failed, was lost or was killed at its limit. It is retried in the next turn.
	FDBTurnFailed FDBTurnOutcome = "Failed"
)

// FDBTurnReport reports to the queue how far a turn is.
type FDBTurnReport struct {
	Ref  ObjectRef `json:"ref"`
	Turn int64     `json:"turn"`
	// Closing: only pods in termination are left. Ended: nothing is.
	Closing bool           `json:"closing,omitempty"`
	Ended   bool           `json:"ended,omitempty"`
	Outcome FDBTurnOutcome `json:"outcome,omitempty"`
}

// FDBExpiriesFound is what the listed objects and pods say: entries in the order of the objects' creation, and turns whose pods
// exist. If there are more than MaxFound expirations, or MaxDeletionsFound deletions, Entries are the front of each, deletions
// first, in the order of their last turns. Beyond describes the rest, by lanes; its NotBefore is when the last turn of the first
// of them began.
type FDBExpiriesFound struct {
	Entries []FDBQueueEntry `json:"entries,omitempty"`
	Turns   []FDBTurn       `json:"turns,omitempty"`
	Beyond  []Beyond        `json:"beyond,omitempty"`
}

// FDBQueueName names a backup to the queue.
type FDBQueueName struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// FDBQueueLimit is the input of UpdateSetExpiryLimit.
type FDBQueueLimit struct {
	Limit int `json:"limit"`
}

// FDBExpiryQueueState answers QueryState.
type FDBExpiryQueueState struct {
	// Limit is how many turns may run at a time.
	Limit int       `json:"limit"`
	Turns []FDBTurn `json:"turns,omitempty"`
	// Entries are in the order of their next turns, and Beyond is how many come after them, as of the last listing of objects.
	Entries []FDBQueueEntry `json:"entries,omitempty"`
	Beyond  int             `json:"beyond,omitempty"`
}
