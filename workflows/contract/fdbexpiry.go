package contract

// KindFDBExpiry is one turn: it expires or deletes data of a FoundationDBBackup, which is its object, so that there are never two
// for one backup. Input: FDBExpiryInput, no result: it reports to the backup and the queue by signals. Only the queue starts it.
// It receives SignalChanged (something has happened to its pod) and answers QueryState with FDBExpiryState.
var KindFDBExpiry = Kind{
	Workflow: "FDBExpiry", ID: "fdb-expiry", Kubernetes: "FoundationDBBackup", Summary: "Turn of FoundationDB backup",
	Queue: QueueFDB, Pinned: true,
}

// SignalExpiryResult reports to a FoundationDBBackup workflow how a turn ended. Payload: FDBExpiryResult.
const SignalExpiryResult = "expiry-result"

// The activities.
var (
	// PlanFDBExpiry returns what the turn has to do.
	PlanFDBExpiry = Activity[FDBExpiryStep, FDBExpiryPlan]{"plan-fdb-expiry", "Determine what is due"}
	// ApplyFDBPod creates the pod unless it exists.
	ApplyFDBPod   = Activity[FDBPodStep, FDBPodView]{Name: "apply-fdb-pod"}
	ObserveFDBPod = Activity[FDBPodStep, FDBPodView]{"observe-fdb-pod", "Read the pod"}
	DeleteFDBPod  = Activity[FDBPodStep, FDBPodView]{"delete-fdb-pod", "Delete the pod"}
	// ReportFDBTurn signals the backup's workflow and the queue, and starts the one that does not run.
	ReportFDBTurn = Activity[FDBTurnReports, None]{Name: "report-fdb-turn"}
)

// FDBExpiryInput starts, and continues, one turn.
type FDBExpiryInput struct {
	Cluster string    `json:"cluster"`
	Ref     ObjectRef `json:"ref"`
	Job     FDBJob    `json:"job"`
	Turn    int64     `json:"turn"`
	// Carried is what a run hands over to the next; nil at the start.
	Carried *FDBExpiryCarried `json:"left,omitempty"`
}

// FDBExpiryCarried is what a run of a turn hands over to the next while it waits for the end of a pod.
type FDBExpiryCarried struct {
	// Held are the containers of which this turn is, or may be, the holder.
	Held []FDBPlace `json:"held,omitempty"`
	// Unused are the containers that the backup no longer uses, and whose guards do not know that yet.
	Unused []FDBPlace `json:"unused,omitempty"`
	// Result is how the turn ended. Pod is its last pod, or one of an earlier turn, which still exists.
	Result *FDBExpiryResult `json:"result,omitempty"`
	Pod    *FDBPodStep      `json:"pod,omitempty"`
	// Closing: the queue knows that only a pod in termination is left. Reported: the backup knows the result.
	Closing  bool `json:"closing,omitempty"`
	Reported bool `json:"reported,omitempty"`
}

// FDBExpiryStep is the input of PlanFDBExpiry.
type FDBExpiryStep struct {
	Ref ObjectRef `json:"ref"`
	Job FDBJob    `json:"job"`
	// Turn is when the turn began: cutoffs are relative to it.
	Turn int64 `json:"turn"`
}

// FDBExpiryPlan is what a turn has to do.
type FDBExpiryPlan struct {
	// Outcome is set when nothing is to be run, or nothing can be; Message says why.
	Outcome FDBTurnOutcome `json:"outcome,omitempty"`
	Message string         `json:"message,omitempty"`
	// Owner is the backup's name for people, namespace/name; the workflow puts the Kubernetes cluster before it.
	Owner string `json:"owner,omitempty"`
	// Expire is the container to expire; nil for deletions.
	Expire *FDBExpire `json:"expire,omitempty"`
	// Delete are the containers to delete: with FDBJobDelete all, with FDBJobExpire those older than Expire's, to be deleted only
	// if that one turns out to hold the minimum.
	Delete []FDBPlace `json:"delete,omitempty"`
	// Sharing are, by container, other FoundationDBBackups of this Kubernetes cluster whose status names one of the containers to
	// delete: the guard may not know those whose workflow ended long ago.
	Sharing map[string][]ObjectRef `json:"sharing,omitempty"`
	// Pods are pods of earlier turns of this object that still exist, by their names.
	Pods []FDBPodView `json:"pods,omitempty"`
}

// FDBPlace is a container.
type FDBPlace struct {
	URL string `json:"url"`
	// Container is what FDBContainerID is made of.
	Container string `json:"container"`
}

// FDBExpire says how a container is expired. Times are in Unix seconds.
type FDBExpire struct {
	FDBPlace
	// Before: data older than that may be deleted.
	Before int64 `json:"before"`
	// RestorableAfter: every moment since then stays restorable; 0 if the spec asks for nothing.
	RestorableAfter int64 `json:"restorableAfter,omitempty"`
	// Stopped: no backup is written there any more.
	Stopped bool `json:"stopped,omitempty"`
}

// FDBPodStep names a pod of a turn and says what it is to run.
type FDBPodStep struct {
	Ref  ObjectRef `json:"ref"`
	Turn int64     `json:"turn"`
	// Number counts the pods of a turn from 1; 0 names a pod of an earlier turn by Name.
	Number int    `json:"number,omitempty"`
	Name   string `json:"name,omitempty"`
	// Job is the turn's: a turn that expires also deletes older containers.
	Job FDBJob `json:"job,omitempty"`
	// One of Expire and Delete is what it runs; neither is needed to read or delete it.
	Expire *FDBExpire `json:"expire,omitempty"`
	Delete []FDBPlace `json:"delete,omitempty"`
}

// FDBPodView describes a pod.
type FDBPodView struct {
	Name  string `json:"name,omitempty"`
	Found bool   `json:"found,omitempty"`
	// Started: its container runs, or has run.
	Started bool `json:"started,omitempty"`
	// Terminating: it has a deletion timestamp. Ended: its container has ended for good.
	Terminating bool `json:"terminating,omitempty"`
	Ended       bool `json:"ended,omitempty"`
	// Created is when it was created, in Unix seconds.
	Created int64 `json:"created,omitempty"`
	// Waiting says what it waits for, for example an image that cannot be pulled.
	Waiting string `json:"waiting,omitempty"`
	// Failed says why it ended without a result: evicted, node lost, killed, or refused.
	Failed string `json:"failed,omitempty"`
	// Refused: the pod was not created, by Holdfast's decision or the API server's; Failed says why.
	Refused bool `json:"refused,omitempty"`
	// Result is what its container left as its termination message.
	Result *FDBPodResult `json:"result,omitempty"`
}

// FDBPodResult is what a pod's tool reported.
type FDBPodResult struct {
	// Failure is set when the job could not be done; FDBClassUnsafe is a refusal.
	Failure *FDBFailure `json:"failure,omitempty"`
	// Before and After describe the container around an expire; After is nil if it was not run.
	Before *FDBContainer `json:"before,omitempty"`
	After  *FDBContainer `json:"after,omitempty"`
	// Deleted are the URLs whose data are gone, no matter who deleted them.
	Deleted []string `json:"deleted,omitempty"`
}

// FDBTurnReports is what a turn reports to others. Nil parts are not sent.
type FDBTurnReports struct {
	Cluster string           `json:"cluster"`
	Ref     ObjectRef        `json:"ref"`
	Report  *FDBTurnReport   `json:"report,omitempty"`
	Result  *FDBExpiryResult `json:"result,omitempty"`
}

// FDBExpiryResult reports to a FoundationDBBackup how a turn ended.
type FDBExpiryResult struct {
	Job  FDBJob `json:"job"`
	Turn int64  `json:"turn"`
	// At is when it ended, in Unix seconds.
	At      int64          `json:"at"`
	Outcome FDBTurnOutcome `json:"outcome"`
	// Reason is for status.expiry.reason, see the constants of package v1alpha1; Message says more.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Container describes the container after an expire.
	Container *FDBContainer `json:"container,omitempty"`
	// Deleted are the URLs whose data are gone. Kept are those that others use too: they stay, and the object may be released.
	Deleted []string `json:"deleted,omitempty"`
	Kept    []string `json:"kept,omitempty"`
}

// FDBExpiryState answers QueryState.
type FDBExpiryState struct {
	Input FDBExpiryInput `json:"input"`
	Plan  FDBExpiryPlan  `json:"plan"`
	Pod   FDBPodView     `json:"pod"`
}
