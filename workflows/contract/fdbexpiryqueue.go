package contract

// KindFDBExpiryQueue keeps the queue of expirations of a Kubernetes cluster. Its ID is FDBExpiryQueueID. Input:
// FDBExpiryQueueInput, no result. It answers QueryState with FDBExpiryQueueState.
var KindFDBExpiryQueue = Kind{
	Workflow: "FDBExpiryQueue", Summary: "Expirations and deletions of FoundationDB backups of", Queue: QueueFDB,
}

// What is said to the queue of expirations.
const (
	// SignalExpiryEntry tells the queue what a backup wants of it. Payload: FDBQueueRequest. Telling it again is harmless.
	SignalExpiryEntry = "entry"
	// SignalExpiryTurn tells the queue how far a turn is. Payload: FDBTurnReport. Telling it again is harmless.
	SignalExpiryTurn = "turn"
	// UpdateExpireNow puts a backup first, once, whatever the minimum interval. Input: FDBQueueName, result: FDBQueueAnswer.
	UpdateExpireNow = "expire-now"
	// UpdateRemoveEntry takes a backup out of the queue until it asks again. Input: FDBQueueName, result: FDBQueueAnswer.
	UpdateRemoveEntry = "remove"
	// UpdateSetExpiryLimit sets how many turns may run at a time; 0 goes back to the worker's flag. Input: FDBQueueLimit, result:
	// FDBQueueAnswer.
	UpdateSetExpiryLimit = "set-limit"
	// ErrorFDBQueueInvalid is the type of the error that refuses an Update which can never be carried out. Not retryable.
	ErrorFDBQueueInvalid = "FDBQueueInvalid"
)

// The activities.
var (
	// SignalFDBExpiryQueue signals the queue, which it starts if need be.
	SignalFDBExpiryQueue = Activity[FDBQueueRequest, None]{Name: "signal-fdb-expiry-queue"}
	// StartFDBExpiry starts the turn's workflow. That it runs already is success. An error that is not retryable says that
	// Temporal will never take it.
	StartFDBExpiry = Activity[FDBExpiryInput, None]{Name: "start-fdb-expiry"}
	// FindFDBExpiries returns what the objects and pods of the cluster tell, given the order of the namespaces. A queue that
	// Temporal has lost is refilled by it, and no turn is begun beside a pod that runs.
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
	// FDBJobNone: nothing; the backup has no entry.
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

// Lane is where a job waits.
func (j FDBJob) Lane() int {
	if j == FDBJobDelete {
		return LaneDelete
	}
	return LaneExpire
}

// FDBExpiryQueueInput starts, and continues, the queue of a Kubernetes cluster.
type FDBExpiryQueueInput struct {
	Cluster string `json:"cluster"`
	// Found: what objects and pods tell is among the entries and turns.
	Found bool `json:"found,omitempty"`
	// Entries are in the order of their asking; whose turn has begun is at the end. Turns are those that run; their backups
	// have an entry too, unless it was removed.
	Entries []FDBQueueEntry `json:"entries,omitempty"`
	Turns   []FDBTurn       `json:"turns,omitempty"`
	// Limit is what UpdateSetExpiryLimit has set; 0 if the flag holds.
	Limit int `json:"limit,omitempty"`
	// Carried is what else the queue knows: of deletions in lane LaneDelete, of expirations in lane LaneExpire. FindFDBExpiries
	// is told the order of the namespaces.
	Carried Carried[ObjectRef] `json:"carried,omitzero"`
	// Named asks FindFDBExpiries for the entries of those backups too, wherever they stand.
	Named []FDBQueueName `json:"named,omitempty"`
}

// FDBQueueEntry is a backup's place in the queue.
type FDBQueueEntry struct {
	Ref ObjectRef `json:"ref"`
	Job FDBJob    `json:"job"`
	// First: people have put it first. It has its next turn before all others.
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
	// ClosedSince is when its workflow was first found not to run without having told its end, in Unix seconds; 0 if it runs.
	ClosedSince int64 `json:"closedSince,omitempty"`
}

// FDBQueueRequest is what a backup wants of the queue.
type FDBQueueRequest struct {
	// Cluster is the Kubernetes cluster's ID.
	Cluster string    `json:"cluster"`
	Ref     ObjectRef `json:"ref"`
	// Job is what it wants; FDBJobNone takes its entry out.
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
	// FDBTurnNotYet: somebody else holds or reads the container, or the database does not answer: tried again after
	// --fdb-expiry-retry-interval.
	FDBTurnNotYet FDBTurnOutcome = "NotYet"
	// FDBTurnFailed: the pod failed, was lost or was cut at its limit; tried again in its next turn.
	FDBTurnFailed FDBTurnOutcome = "Failed"
)

// FDBTurnReport tells the queue how far a turn is.
type FDBTurnReport struct {
	Ref  ObjectRef `json:"ref"`
	Turn int64     `json:"turn"`
	// Closing: only pods in termination are left. Ended: nothing is.
	Closing bool           `json:"closing,omitempty"`
	Ended   bool           `json:"ended,omitempty"`
	Outcome FDBTurnOutcome `json:"outcome,omitempty"`
}

// FDBExpiriesFound is what objects and pods tell: entries in the order of the objects' creation, and turns whose pods exist. If
// there are more than MaxFound expirations, or MaxDeletionsFound deletions, it is the front of each, deletions first, in the
// order of their last turns. Beyond is what is said of the others, by lanes; NotBefore is when the last turn of the first of them
// began.
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

// FDBQueueAnswer says what an Update has brought about, in a sentence for people.
type FDBQueueAnswer struct {
	Message string `json:"message"`
}

// FDBExpiryQueueState answers QueryState.
type FDBExpiryQueueState struct {
	// Limit is how many turns may run at a time.
	Limit int       `json:"limit"`
	Turns []FDBTurn `json:"turns,omitempty"`
	// Entries are in the order of their next turns, and Beyond is how many have theirs later, as far as objects have told.
	Entries []FDBQueueEntry `json:"entries,omitempty"`
	Beyond  int             `json:"beyond,omitempty"`
}
