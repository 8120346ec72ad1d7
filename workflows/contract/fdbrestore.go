package contract

import "time"

// KindFDBRestore serves one FoundationDBRestore; "fdbr" is the resource's short name. Input: FDBRestoreInput, no result.
var KindFDBRestore = Kind{
	Workflow: "FoundationDBRestore", ID: "fdbr", Kubernetes: "FoundationDBRestore", Summary: "FoundationDB restore", Queue: QueueFDB,
}

// The activities.
var (
	// ObserveFDBRestore reads; it adds our finalizer where it is due.
	ObserveFDBRestore = Activity[FDBRestoreStep, FDBRestoreView]{
		"observe-fdb-restore", "Read the restore, its clusters, its backup and its Secret",
	}
	// PlanFDBRestore writes what is going to be restored, before it is started.
	PlanFDBRestore = Activity[FDBRestorePlanning, FDBRestoreView]{"plan-fdb-restore", "Write down what is restored"}
	// PublishFDBRestore writes what a pass found into the status.
	PublishFDBRestore = Activity[FDBRestoreFindings, FDBRestoreView]{"publish-fdb-restore", "Write the status"}
	// ReleaseFDBRestore takes our finalizer off an object that is being deleted.
	ReleaseFDBRestore = Activity[FDBRestoreRelease, FDBRestoreView]{"release-fdb-restore", "Let the object go"}

	// InspectFDBRestore changes nothing. It runs on FDBTaskQueue, as do the next two.
	InspectFDBRestore = Activity[FDBRestoreInspect, FDBRestoreInspection]{
		"inspect-fdb-restore", "Ask FoundationDB for the restore's state",
	}
	// RunFDBRestoreCommand takes one of the operations below. It reads the state first and does nothing that is done already or has
	// become undue. Only the owner of the destination schedules it, one at a time.
	RunFDBRestoreCommand = Activity[FDBCommand, FDBOutcome]{Name: "run-fdb-restore-command"}
	// FinalizeFDBRestore runs one task of the finalization.
	FinalizeFDBRestore = Activity[FDBRestoreTaskStep, FinalizationOutcome]{Name: "finalize-fdb-restore"}
)

// Operations of fdbrestore that an owner runs. FDBCommand.Ref is the FoundationDBRestore's, Tag the restore's.
const (
	FDBRestoreStart FDBOperation = "restore"
	FDBRestoreAbort FDBOperation = "abort-restore"
)

// FDBRestoreRun is how long the start of a restore may run once a worker has it, instead of FDBCommandRun: it lists the whole
// container before it has any effect. Others wait so long for their turn; what is too late then is answered Later.
const FDBRestoreRun = 8 * time.Minute

// Tasks of a restore's finalization.
const (
	// FDBRestoreTaskUnlocked verifies that the restore has unlocked the destination.
	FDBRestoreTaskUnlocked = "DatabaseUnlocked"
	// FDBRestoreTaskVersion verifies which version was restored, before that is recorded.
	FDBRestoreTaskVersion = "RestoredVersion"
)

// FDBRestoreTasks are the tasks of a restore's finalization, in their order.
func FDBRestoreTasks() []string { return []string{FDBRestoreTaskUnlocked, FDBRestoreTaskVersion} }

// Classes of failures of restores.
const (
	// FDBClassNotEmpty: the destination has data in the ranges to restore.
	FDBClassNotEmpty FDBClass = "DestinationNotEmpty"
	// FDBClassNotRestorable: the version cannot be restored from the backup.
	FDBClassNotRestorable FDBClass = "NotRestorable"
)

// FDBRestoreReads is how long a restore keeps its container from being expired, from the last time it said so.
const FDBRestoreReads = 12 * time.Hour

// FDBRestoreInput starts, and continues, the workflow of one FoundationDBRestore.
type FDBRestoreInput struct {
	ObjectInput
	// Memory is what a run leaves to the next.
	Memory FDBRestoreMemory `json:"memory,omitzero"`
}

// FDBRestoreMemory is what cannot be read anywhere.
type FDBRestoreMemory struct {
	// Progress and ProgressAt (Unix seconds) are the last progress that was seen.
	Progress   int64 `json:"progress,omitempty"`
	ProgressAt int64 `json:"progressAt,omitempty"`
	// DoubtUntil is until when, in Unix seconds, a start may still take effect whose end nobody knows: its worker was lost, and may
	// live where nobody sees it.
	DoubtUntil int64 `json:"doubtUntil,omitempty"`
	// Owner is the FoundationDB cluster whose owner knows of this restore.
	Owner string `json:"owner,omitempty"`
	// Reading is the container whose guard knows of this restore, and ReadingSince when it was last told, in Unix seconds.
	Reading      string `json:"reading,omitempty"`
	ReadingSince int64  `json:"readingSince,omitempty"`
	// Quiet counts looks in a row that found nothing new.
	Quiet int `json:"quiet,omitempty"`
	// UnreachableSince is when, in Unix seconds, a restore being deleted was first found unreachable; 0 when it answers.
	UnreachableSince int64 `json:"unreachableSince,omitempty"`
}

// FDBRestoreStep is the input of ObserveFDBRestore.
type FDBRestoreStep struct {
	Ref ObjectRef `json:"ref"`
}

// FDBRestorePlan is what is going to be restored. Once written into the status it never changes.
type FDBRestorePlan struct {
	// Tag is the restore's name in the destination, unique to the object.
	Tag string `json:"tag"`
	// URL is the container's, without anything secret. Container is what FDBContainerID is made of.
	URL       string `json:"url"`
	Container string `json:"container,omitempty"`
	// Version is what is restored to, always explicit.
	Version int64 `json:"version"`
	// Time is about when that was, in Unix seconds; 0 if it is not known.
	Time int64 `json:"time,omitempty"`
	// Destination is the description:id of the database that it was planned for.
	Destination string `json:"destination"`
}

// FDBRestorePlanning is the input of PlanFDBRestore.
type FDBRestorePlanning struct {
	Ref        ObjectRef      `json:"ref"`
	Generation int64          `json:"generation"`
	Plan       FDBRestorePlan `json:"plan"`
}

// FDBRestoreView is what Kubernetes says of a FoundationDBRestore: plain facts, read live. It holds no secret.
type FDBRestoreView struct {
	// Found is false when no object of that UID exists.
	Found           bool  `json:"found"`
	BeingDeleted    bool  `json:"beingDeleted,omitempty"`
	Held            bool  `json:"held,omitempty"`
	NamespaceEnding bool  `json:"namespaceEnding,omitempty"`
	Generation      int64 `json:"generation,omitempty"`
	Observed        bool  `json:"observed,omitempty"`
	// Owner is the description:id of the destination; empty if it is not known how to reach it. ClusterGone: there is no
	// FoundationDBCluster of that name.
	Owner       string `json:"owner,omitempty"`
	ClusterGone bool   `json:"clusterGone,omitempty"`
	// Problem is what keeps the restore from being started, as a condition.
	Problem *FDBCondition `json:"problem,omitempty"`
	// Stop: spec.restoreState is Stopped.
	Stop bool `json:"stop,omitempty"`
	// Tag is the one that a plan would get; URL the container as far as it is known (of backupURL, or of the newest backup of
	// backupName that can be restored), Container its guard's.
	Tag       string `json:"tag,omitempty"`
	URL       string `json:"url,omitempty"`
	Container string `json:"container,omitempty"`
	// Wanted is spec.version; 0 if it asks for a time or the latest.
	Wanted    int64    `json:"wanted,omitempty"`
	Timestamp int64    `json:"timestamp,omitempty"` // spec.timestamp in Unix seconds; 0 if none, or Wanted is set
	KeyRanges []string `json:"keyRanges,omitempty"`
	// Plan is what was written into the status; nil before.
	Plan *FDBRestorePlan `json:"plan,omitempty"`
	// State is status.state, Finalized says that the finalization has ended.
	State     string `json:"state,omitempty"`
	Finalized bool   `json:"finalized,omitempty"`
}

// FDBRestoreInspect asks for the state of a restore in the destination and, with Resolve, for the version to restore to and for
// what would keep a restore from being started.
type FDBRestoreInspect struct {
	Ref     ObjectRef `json:"ref"`
	Resolve bool      `json:"resolve,omitempty"`
}

// FDBRestoreInspection is what FoundationDB's tools say.
type FDBRestoreInspection struct {
	// Failure is set when the destination could not be asked; nothing else is then.
	Failure *FDBFailure `json:"failure,omitempty"`
	// Restore is the state of the planned tag; nil if that was never used, or nothing is planned.
	Restore *FDBRestoreProgress `json:"restore,omitempty"`
	// LockUID is the UID by which the destination is locked; empty if it is not. LockKnown: the destination said.
	LockUID   string `json:"lockUid,omitempty"`
	LockKnown bool   `json:"lockKnown,omitempty"`
	// AgentsPaused: all agents of the destination are paused. Agents is how many there are, as far as the destination says.
	AgentsPaused bool `json:"agentsPaused,omitempty"`
	Agents       int  `json:"agents,omitempty"`
	// NotEmpty names a range to be restored that holds data, with Resolve.
	NotEmpty string `json:"notEmpty,omitempty"`
	// Point is what would be restored to, with Resolve, and URL the container it is of. Unresolved says why there is none.
	Point      *FDBPoint   `json:"point,omitempty"`
	URL        string      `json:"url,omitempty"`
	Unresolved *FDBFailure `json:"unresolved,omitempty"`
}

// FDBRestoreProgress is the state of a restore, as `fdbrestore status` tells it.
type FDBRestoreProgress struct {
	Tag string `json:"tag"`
	UID string `json:"uid,omitempty"`
	// State is queued, starting, running, completed or aborted.
	State        string `json:"state,omitempty"`
	Blocks       int64  `json:"blocks,omitempty"`
	BlocksDone   int64  `json:"blocksDone,omitempty"`
	BytesWritten int64  `json:"bytesWritten,omitempty"`
	// CurrentVersion is up to where the log was applied, Version what is restored to.
	CurrentVersion int64 `json:"currentVersion,omitempty"`
	Version        int64 `json:"version,omitempty"`
	// LastError is bounded and redacted, without its age; empty if there is none.
	LastError string `json:"lastError,omitempty"`
}

// FDBRestoreFindings are what a pass found, for the status.
type FDBRestoreFindings struct {
	Ref        ObjectRef `json:"ref"`
	Generation int64     `json:"generation"`
	// State is status.state, Percent status.progress.percentDone.
	State        string         `json:"state"`
	Percent      int32          `json:"percent,omitempty"`
	BytesWritten int64          `json:"bytesWritten,omitempty"`
	Conditions   []FDBCondition `json:"conditions,omitempty"`
	// Restored is status.restoredVersion, written by the finalization alone; 0 before.
	Restored int64 `json:"restored,omitempty"`
	// Tasks are status.finalization, as they are.
	Tasks []RecordedTask `json:"tasks,omitempty"`
	// Finalized: all tasks have ended.
	Finalized bool `json:"finalized,omitempty"`
}

// FDBRestoreRelease says how the restore was left when the finalizer is taken off.
type FDBRestoreRelease struct {
	Ref ObjectRef `json:"ref"`
	// Note is for the Event, which is a Warning: for example that the destination holds partial data. Empty: nothing is left.
	Note string `json:"note,omitempty"`
	// Aborted: it was ended before.
	Aborted bool `json:"aborted,omitempty"`
}

// FDBRestoreTaskStep is the input of FinalizeFDBRestore.
type FDBRestoreTaskStep struct {
	Ref      ObjectRef `json:"ref"`
	Task     string    `json:"task"`
	Deadline time.Time `json:"deadline"`
}

// FDBRestoreState answers QueryState.
type FDBRestoreState struct {
	View   FDBRestoreView       `json:"view"`
	Seen   FDBRestoreInspection `json:"seen"`
	Memory FDBRestoreMemory     `json:"memory"`
}
