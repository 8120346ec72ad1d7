package contract

import "time"

// KindFDBRestore serves one FoundationDBRestore; "fdbr" is the resource's short name. Input: FDBRestoreInput, no result.
var KindFDBRestore = Kind{
	Workflow: "FoundationDBRestore", ID: "fdbr", Kubernetes: "FoundationDBRestore", Summary: "FoundationDB restore", Queue: QueueFDB,
}

// The activities.
var (
	// ObserveFDBRestore reads; it adds our finalizer where it is due.
	ObserveFDBRestore = Activity[ObjectStep, FDBRestoreView]{
		"observe-fdb-restore", "Read the restore, its clusters, its backup and its Secret",
	}
	// PlanFDBRestore writes into the status what is going to be restored, before the restore is started.
	PlanFDBRestore = Activity[FDBRestorePlanning, FDBRestoreView]{"plan-fdb-restore", "Record what is restored"}
	// PublishFDBRestore writes what a pass found into the status.
	PublishFDBRestore = Activity[FDBRestoreFindings, FDBRestoreView]{"publish-fdb-restore", "Write the status"}
	// ReleaseFDBRestore removes our finalizer from an object that is being deleted.
	ReleaseFDBRestore = Activity[FDBRestoreRelease, FDBRestoreView]{"release-fdb-restore", "Remove the finalizers"}

	// InspectFDBRestore reads the restore's state and changes nothing. It runs on FDBTaskQueue, as do the next two.
	InspectFDBRestore = Activity[FDBRestoreInspect, FDBRestoreInspection]{
		"inspect-fdb-restore", "Read the restore's state from FoundationDB",
	}
	// RunFDBRestoreCommand runs one of the operations below. It reads the state first, and does nothing that is already done or no
	// longer due. Only the owner of the destination schedules it, one at a time.
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
// container before it has any effect. Other commands wait meanwhile; one that is then too late is answered with Later.
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

// FDBRestoreReads is how long a restore keeps its container from being expired, from its last request to the guard.
const FDBRestoreReads = 12 * time.Hour

// FDBRestoreInput starts, and continues, the workflow of one FoundationDBRestore.
type FDBRestoreInput struct {
	ObjectInput
	// Memory is what a run hands over to the next.
	Memory FDBRestoreMemory `json:"memory,omitzero"`
}

// FDBRestoreMemory is what a workflow knows and cannot read from any object or database.
type FDBRestoreMemory struct {
	// Progress is the last progress that was seen, and ProgressAt when, in Unix seconds.
	Progress   int64 `json:"progress,omitempty"`
	ProgressAt int64 `json:"progressAt,omitempty"`
	// DoubtUntil is until when, in Unix seconds, a start of unknown outcome may still take effect: its worker was lost, and may
	// still run where nobody sees it.
	DoubtUntil int64 `json:"doubtUntil,omitempty"`
	// Owner is the FoundationDB cluster whose owner knows of this restore.
	Owner string `json:"owner,omitempty"`
	// Reading is the container whose guard knows of this restore, and ReadingSince when the last request was sent, in Unix seconds.
	Reading      string `json:"reading,omitempty"`
	ReadingSince int64  `json:"readingSince,omitempty"`
	// Quiet counts the inspections in a row that found nothing new.
	Quiet int `json:"quiet,omitempty"`
	// UnreachableSince is when, in Unix seconds, a restore being deleted was first found unreachable; 0 when it answers.
	UnreachableSince int64 `json:"unreachableSince,omitempty"`
}

// FDBRestorePlan is what is going to be restored. Once written into the status it never changes.
type FDBRestorePlan struct {
	// Tag is the restore's name in the destination, unique to the object.
	Tag string `json:"tag"`
	// URL is the container's, without anything secret. Container is what FDBContainerID is made of.
	URL       string `json:"url"`
	Container string `json:"container,omitempty"`
	// Version is the version to restore to, always explicit.
	Version int64 `json:"version"`
	// Time is about when the version was committed, in Unix seconds; 0 if it is not known.
	Time int64 `json:"time,omitempty"`
	// Destination is the description:id of the database that it was planned for.
	Destination string `json:"destination"`
}

// FDBRestorePlanning is the input of PlanFDBRestore.
type FDBRestorePlanning struct {
	Ref        `json:"ref"`
	Generation int64          `json:"generation"`
	Plan       FDBRestorePlan `json:"plan"`
}

// FDBRestoreView is what was read from Kubernetes about a FoundationDBRestore: plain facts. It holds no secret.
type FDBRestoreView struct {
	// Found is false when no object of that UID exists.
	Found           bool  `json:"found"`
	BeingDeleted    bool  `json:"beingDeleted,omitempty"`
	Held            bool  `json:"held,omitempty"`
	NamespaceEnding bool  `json:"namespaceEnding,omitempty"`
	Generation      int64 `json:"generation,omitempty"`
	Observed        bool  `json:"observed,omitempty"`
	// Owner is the description:id of the destination; empty if its connection string is not known. ClusterGone: there is no
	// FoundationDBCluster of that name.
	Owner       string `json:"owner,omitempty"`
	ClusterGone bool   `json:"clusterGone,omitempty"`
	// Problem is the condition that keeps the restore from being started; nil if there is none.
	Problem *FDBCondition `json:"problem,omitempty"`
	// Stop: the spec asks to abort the restore (spec.restoreState: Stopped).
	Stop bool `json:"stop,omitempty"`
	// Tag is the one that a plan would get. URL is the container as far as it is known: of backupURL, or of the newest backup of
	// backupName that can be restored. Container is what FDBContainerID is made of.
	Tag       string `json:"tag,omitempty"`
	URL       string `json:"url,omitempty"`
	Container string `json:"container,omitempty"`
	// Wanted is the version that the spec asks for; 0 if it asks for a time or the latest. Timestamp is the time that it asks for,
	// in Unix seconds; 0 if none, or Wanted is set.
	Wanted    int64    `json:"wanted,omitempty"`
	Timestamp int64    `json:"timestamp,omitempty"`
	KeyRanges []string `json:"keyRanges,omitempty"`
	// Plan is what was written into the status; nil before.
	Plan *FDBRestorePlan `json:"plan,omitempty"`
	// State is how far the restore is, as the status shows it; Holdfast alone writes it. Finalized: the finalization has ended.
	State     string `json:"state,omitempty"`
	Finalized bool   `json:"finalized,omitempty"`
}

// FDBRestoreInspect is the input of InspectFDBRestore, which reads the state of a restore in the destination and, with Resolve,
// the version to restore to and what would keep a restore from being started.
type FDBRestoreInspect struct {
	Ref     ObjectRef `json:"ref"`
	Resolve bool      `json:"resolve,omitempty"`
}

// FDBRestoreInspection is what FoundationDB's tools report.
type FDBRestoreInspection struct {
	// Failure is set when the destination could not be read; nothing else is then.
	Failure *FDBFailure `json:"failure,omitempty"`
	// Restore is the state of the planned tag; nil if that was never used, or nothing is planned.
	Restore *FDBRestoreProgress `json:"restore,omitempty"`
	// LockUID is the UID by which the destination is locked; empty if it is not. LockKnown: the destination reported it.
	LockUID   string `json:"lockUid,omitempty"`
	LockKnown bool   `json:"lockKnown,omitempty"`
	// AgentsPaused: all agents of the destination are paused. Agents is how many there are, as the destination reports.
	AgentsPaused bool `json:"agentsPaused,omitempty"`
	Agents       int  `json:"agents,omitempty"`
	// NotEmpty names a range to be restored that holds data, with Resolve.
	NotEmpty string `json:"notEmpty,omitempty"`
	// Point is what would be restored to, with Resolve, and URL its container. Unresolved says why there is no point.
	Point      *FDBPoint   `json:"point,omitempty"`
	URL        string      `json:"url,omitempty"`
	Unresolved *FDBFailure `json:"unresolved,omitempty"`
}

// FDBRestoreProgress is the state of a restore, as `fdbrestore status` reports it.
type FDBRestoreProgress struct {
	Tag string `json:"tag"`
	UID string `json:"uid,omitempty"`
	// State is queued, starting, running, completed or aborted.
	State        string `json:"state,omitempty"`
	Blocks       int64  `json:"blocks,omitempty"`
	BlocksDone   int64  `json:"blocksDone,omitempty"`
	BytesWritten int64  `json:"bytesWritten,omitempty"`
	// CurrentVersion is the version up to which the log was applied, Version the one to restore to.
	CurrentVersion int64 `json:"currentVersion,omitempty"`
	Version        int64 `json:"version,omitempty"`
	// LastError is bounded and redacted, without its age; empty if there is none.
	LastError string `json:"lastError,omitempty"`
}

// FDBRestoreFindings is the input of PublishFDBRestore: what a pass found, for the status.
type FDBRestoreFindings struct {
	Ref        `json:"ref"`
	Generation int64 `json:"generation"`
	// State is how far the restore is, Percent how much of it is done, in percent.
	State        string         `json:"state"`
	Percent      int32          `json:"percent,omitempty"`
	BytesWritten int64          `json:"bytesWritten,omitempty"`
	Conditions   []FDBCondition `json:"conditions,omitempty"`
	// Restored is the version that was restored, which the finalization alone writes; 0 before.
	Restored int64 `json:"restored,omitempty"`
	// Tasks are all tasks of the finalization; they replace those in the status.
	Tasks []RecordedTask `json:"tasks,omitempty"`
	// Finalized: all tasks have ended.
	Finalized bool `json:"finalized,omitempty"`
}

// FDBRestoreRelease is the input of ReleaseFDBRestore: how the restore was left.
type FDBRestoreRelease struct {
	Ref `json:"ref"`
	// Note is for the Event, which is a Warning: for example that the destination holds partial data. Empty: nothing is left.
	Note string `json:"note,omitempty"`
	// Aborted: the destination reported the restore as aborted before the release.
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
