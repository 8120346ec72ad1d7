package contract

import "time"

// Names of the workflow that keeps the queue of expirations, on the wire. Its ID is FDBExpiryQueueID, its queue the Kubernetes
// cluster's TaskQueue. It answers QueryState with FDBExpiryQueueState.
const (
	// WorkflowFDBExpiryQueue is the workflow type. Input: FDBExpiryQueueInput, no result.
	WorkflowFDBExpiryQueue = "FDBExpiryQueue"
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

	// ActivityTellFDBExpiryQueue takes an FDBQueueRequest and signals it to the queue, which it starts if need be.
	ActivityTellFDBExpiryQueue = "tell-fdb-expiry-queue"
	// ActivityStartFDBExpiry takes an FDBExpiryInput and starts the turn's workflow. That it runs already is success. An error that
	// is not retryable says that Temporal will never take it.
	ActivityStartFDBExpiry = "start-fdb-expiry"
	// ActivityFindFDBExpiries takes an FDBExpiryQueueInput, of which it needs the cluster, and returns FDBExpiriesFound: what the
	// objects and pods tell. A queue that Temporal has lost is refilled by it, and no turn is begun beside a pod that runs.
	ActivityFindFDBExpiries = "find-fdb-expiries"
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

// FDBExpiryQueueInput starts, and continues, the queue of a Kubernetes cluster.
type FDBExpiryQueueInput struct {
	Cluster string `json:"cluster"`
	// Found: what objects and pods tell is among the entries and turns.
	Found bool `json:"found,omitempty"`
	// Entries are in the order of their turns. Turns are those that run; their backups have an entry too, unless it was removed.
	Entries []FDBQueueEntry `json:"entries,omitempty"`
	Turns   []FDBTurn       `json:"turns,omitempty"`
	// Limit is what UpdateSetExpiryLimit has set; 0 if the flag holds.
	Limit int `json:"limit,omitempty"`
}

// FDBQueueEntry is a backup's place in the queue.
type FDBQueueEntry struct {
	Ref ObjectRef `json:"ref"`
	Job FDBJob    `json:"job"`
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
	// FDBTurnNothing: there is nothing to expire or delete, or the object is gone.
	FDBTurnNothing FDBTurnOutcome = "NothingToDo"
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

// FDBExpiriesFound is what objects and pods tell: entries in the order of the objects' creation, and turns whose pods exist.
type FDBExpiriesFound struct {
	Entries []FDBQueueEntry `json:"entries,omitempty"`
	Turns   []FDBTurn       `json:"turns,omitempty"`
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
	Limit   int             `json:"limit"`
	Turns   []FDBTurn       `json:"turns,omitempty"`
	Entries []FDBQueueEntry `json:"entries,omitempty"`
}

// Names of the workflow of one turn, on the wire. Its ID is WorkflowID(cluster, KindFDBExpiry, ref): never two for one backup. It
// takes SignalChanged (something has happened to its pod) and answers QueryState with FDBExpiryState.
const (
	// WorkflowFDBExpiry is the workflow type. Input: FDBExpiryInput, no result: it tells the backup and the queue by signals.
	WorkflowFDBExpiry = "FDBExpiry"
	// SignalExpiryResult tells a FoundationDBBackup workflow how a turn ended. Payload: FDBExpiryResult.
	SignalExpiryResult = "expiry-result"

	// ActivityPlanFDBExpiry takes an FDBExpiryStep and returns an FDBExpiryPlan.
	ActivityPlanFDBExpiry = "plan-fdb-expiry"
	// ActivityApplyFDBPod takes an FDBPodStep, makes the pod unless it is there, and returns its FDBPodView.
	ActivityApplyFDBPod = "apply-fdb-pod"
	// ActivityObserveFDBPod takes an FDBPodStep and returns the FDBPodView of its pod.
	ActivityObserveFDBPod = "observe-fdb-pod"
	// ActivityDeleteFDBPod takes an FDBPodStep, deletes its pod and returns the FDBPodView.
	ActivityDeleteFDBPod = "delete-fdb-pod"
	// ActivityTellFDBTurn takes an FDBTurnTidings and signals it to the backup's workflow and to the queue, starting what does not
	// run.
	ActivityTellFDBTurn = "tell-fdb-turn"
)

// FDBExpiryInput starts, and continues, one turn.
type FDBExpiryInput struct {
	Cluster string    `json:"cluster"`
	Ref     ObjectRef `json:"ref"`
	Job     FDBJob    `json:"job"`
	Turn    int64     `json:"turn"`
	// Left is what a run leaves to the next; nil at the start.
	Left *FDBExpiryLeft `json:"left,omitempty"`
}

// FDBExpiryLeft is what a run of a turn leaves to the next while it waits for the end of a pod.
type FDBExpiryLeft struct {
	// Held are the containers whose guards have granted this turn something.
	Held []FDBPlace `json:"held,omitempty"`
	// Unused are the containers that the backup uses no more, which their guards are still to be told.
	Unused []FDBPlace `json:"unused,omitempty"`
	// Result is how the turn ended. Pod is its last one, or one of an earlier turn, which is not gone yet.
	Result *FDBExpiryResult `json:"result,omitempty"`
	Pod    *FDBPodStep      `json:"pod,omitempty"`
	// Closing: the queue knows that only a pod in termination is left. Told: the backup knows the result.
	Closing bool `json:"closing,omitempty"`
	Told    bool `json:"told,omitempty"`
}

// FDBExpiryStep is the input of ActivityPlanFDBExpiry.
type FDBExpiryStep struct {
	Ref ObjectRef `json:"ref"`
	Job FDBJob    `json:"job"`
	// Turn is when the turn began: cutoffs are counted from it.
	Turn int64 `json:"turn"`
}

// FDBExpiryPlan is what a turn has to do.
type FDBExpiryPlan struct {
	// Outcome is set when there is nothing to be run, or nothing can be, with Message saying why.
	Outcome FDBTurnOutcome `json:"outcome,omitempty"`
	Message string         `json:"message,omitempty"`
	// Owner is how people call the backup: Kubernetes cluster, namespace/name, without the cluster, which the workflow adds.
	Owner string `json:"owner,omitempty"`
	// Expire is the container to expire; nil for deletions.
	Expire *FDBExpire `json:"expire,omitempty"`
	// Delete are the containers to delete: with FDBJobDelete all, with FDBJobExpire those older than Expire's, to be deleted only
	// if that one turns out to hold the minimum.
	Delete []FDBPlace `json:"delete,omitempty"`
	// Shared are other FoundationDBBackups of this Kubernetes cluster, as namespace/name, whose status names one of the containers
	// to delete, by container: the guard may have lost those whose workflow has long ended.
	Shared map[string][]string `json:"shared,omitempty"`
	// Pods are pods of earlier turns of this object that still exist, by their names.
	Pods []FDBPodView `json:"pods,omitempty"`
}

// FDBPlace is a container.
type FDBPlace struct {
	URL string `json:"url"`
	// Container is what FDBContainerID is made of.
	Container string `json:"container"`
	// Planned: no data are known there, but a start of which nobody knows may have had its effect.
	Planned bool `json:"planned,omitempty"`
}

// FDBExpire is what a container is expired with. Times are in Unix seconds.
type FDBExpire struct {
	FDBPlace
	// Before: data older than that may go.
	Before int64 `json:"before"`
	// RestorableAfter: every moment since then stays restorable; 0 if nothing is asked for.
	RestorableAfter int64 `json:"restorableAfter,omitempty"`
	// Stopped: no backup is written there any more.
	Stopped bool `json:"stopped,omitempty"`
}

// FDBPodStep names a pod of a turn and says what it shall run.
type FDBPodStep struct {
	Ref  ObjectRef `json:"ref"`
	Turn int64     `json:"turn"`
	// Number counts the pods of a turn from 1; 0 names a pod of an earlier turn by Name.
	Number int    `json:"number,omitempty"`
	Name   string `json:"name,omitempty"`
	// Job is the turn's: also one that expires deletes older containers. Without it, it follows from what the pod runs.
	Job FDBJob `json:"job,omitempty"`
	// One of Expire and Delete is what it runs; neither is needed for looking at it or deleting it.
	Expire *FDBExpire `json:"expire,omitempty"`
	Delete []FDBPlace `json:"delete,omitempty"`
}

// FDBPodView is what there is of a pod.
type FDBPodView struct {
	Name  string `json:"name,omitempty"`
	Found bool   `json:"found,omitempty"`
	// Terminating: it has a deletion timestamp. Ended: its container has ended for good.
	Terminating bool `json:"terminating,omitempty"`
	Ended       bool `json:"ended,omitempty"`
	// Created is when it was made, in Unix seconds.
	Created int64 `json:"created,omitempty"`
	// Waiting says what it waits for, for example an image that cannot be pulled.
	Waiting string `json:"waiting,omitempty"`
	// Failed says why it ended without a result: evicted, node lost, killed, not allowed to be made.
	Failed string `json:"failed,omitempty"`
	// Refused: the pod is not made, by Holdfast or by the API server; Failed says why.
	Refused bool `json:"refused,omitempty"`
	// Result is what its container left as its termination message.
	Result *FDBPodResult `json:"result,omitempty"`
}

// FDBPodResult is what a pod's tool said.
type FDBPodResult struct {
	// Trouble is set when the job could not be done; FDBClassUnsafe is a refusal.
	Trouble *FDBTrouble `json:"trouble,omitempty"`
	// Before and After are the descriptions around an expire; After is missing if it was not run.
	Before *FDBContainer `json:"before,omitempty"`
	After  *FDBContainer `json:"after,omitempty"`
	// Deleted are the URLs whose data are gone, whoever deleted them.
	Deleted []string `json:"deleted,omitempty"`
}

// FDBTurnTidings is what a turn tells others. Nil parts are not told.
type FDBTurnTidings struct {
	Cluster string           `json:"cluster"`
	Ref     ObjectRef        `json:"ref"`
	Report  *FDBTurnReport   `json:"report,omitempty"`
	Result  *FDBExpiryResult `json:"result,omitempty"`
}

// FDBExpiryResult tells a FoundationDBBackup how a turn ended.
type FDBExpiryResult struct {
	Job  FDBJob `json:"job"`
	Turn int64  `json:"turn"`
	// At is when it ended, in Unix seconds.
	At      int64          `json:"at"`
	Outcome FDBTurnOutcome `json:"outcome"`
	// Reason is a word for status.expiry.reason, see the constants of package v1alpha1; Message says more.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Container is what is there after an expire.
	Container *FDBContainer `json:"container,omitempty"`
	// Deleted are the URLs whose data are gone. Kept are those that others use too: they stay, and the object may go.
	Deleted []string `json:"deleted,omitempty"`
	Kept    []string `json:"kept,omitempty"`
}

// FDBExpiryState answers QueryState.
type FDBExpiryState struct {
	Input FDBExpiryInput `json:"input"`
	Plan  FDBExpiryPlan  `json:"plan"`
	Pod   FDBPodView     `json:"pod"`
}

// Names of the workflow that guards one container, on the wire. Its ID is FDBContainerID, its queue SharedTaskQueue: it covers
// all Kubernetes clusters that share a Temporal namespace. It answers QueryState with FDBContainerState.
const (
	// WorkflowFDBContainer is the workflow type. Input: FDBContainerInput, no result.
	WorkflowFDBContainer = "FDBContainer"
	// UpdateFDBContainer asks it. Input: FDBContainerAsk, result: FDBContainerAnswer. Asking again is harmless.
	UpdateFDBContainer = "ask"
	// ErrorFDBContainerInvalid is the type of the error that refuses an FDBContainerAsk which can never be answered. Not retryable.
	ErrorFDBContainerInvalid = "FDBContainerInvalid"
	// ActivityAskFDBContainer sends an FDBContainerAsk to the guard, which it starts if need be, and returns its FDBContainerAnswer.
	ActivityAskFDBContainer = "ask-fdb-container"
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
	// ReadsUntil is set for a restore: until then, in Unix seconds, nothing is expired or deleted.
	ReadsUntil int64 `json:"readsUntil,omitempty"`
	// Since is when a holder got it, in Unix seconds. Deletes: it may delete, not only expire.
	Since   int64 `json:"since,omitempty"`
	Deletes bool  `json:"deletes,omitempty"`
}

// FDBContainerWish is what somebody wants of a container.
type FDBContainerWish string

// The wishes.
const (
	// FDBContainerUse: the container holds its data, or is read by it (ReadsUntil).
	FDBContainerUse FDBContainerWish = "use"
	// FDBContainerLeave: it uses it no more.
	FDBContainerLeave FDBContainerWish = "leave"
	// FDBContainerExpire and FDBContainerDelete: it wants to expire or delete, alone. Of is the workflow for which it does.
	FDBContainerExpire FDBContainerWish = "expire"
	FDBContainerDelete FDBContainerWish = "delete"
	// FDBContainerRelease: it is done with that.
	FDBContainerRelease FDBContainerWish = "release"
)

// FDBContainerAsk is what somebody asks of a guard.
type FDBContainerAsk struct {
	Container string           `json:"container"`
	User      FDBContainerUser `json:"user"`
	Wish      FDBContainerWish `json:"wish"`
	// Of is, with Expire and Delete, the workflow ID of the user for whom it is done: that one is no other user.
	Of string `json:"of,omitempty"`
	// Whole, with Delete: the object of Of is being deleted. If others use the container too, it is left to them: Of is no user any
	// more, so that of several that are deleted at a time the last one deletes the data.
	Whole bool `json:"whole,omitempty"`
	// Fresh, with Use: who asks is about to make the container, whose path has the time of this start; nobody else can know it.
	Fresh bool `json:"fresh,omitempty"`
}

// FDBContainerAnswer is the guard's answer.
type FDBContainerAnswer struct {
	// Held: who asked may expire or delete now, until it says release.
	Held bool `json:"held,omitempty"`
	// Busy says who holds or reads it, or that the guard has not settled, when that is why it is not Held. To Use it says who holds
	// it: the user is enrolled, and nothing is granted beside it, but what was granted before may go on until it is asked again.
	Busy string `json:"busy,omitempty"`
	// Others are the names of other users, when that is why it is not Held for a deletion.
	Others []string `json:"others,omitempty"`
}

// FDBContainerState answers QueryState.
type FDBContainerState struct {
	Users   []FDBContainerUser `json:"users,omitempty"`
	Holder  *FDBContainerUser  `json:"holder,omitempty"`
	Settled bool               `json:"settled,omitempty"`
}
