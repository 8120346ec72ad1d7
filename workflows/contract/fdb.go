package contract

// KindFDBBackup serves one FoundationDBBackup. Input: FDBBackupInput, no result.
var KindFDBBackup = Kind{
	Workflow: "FoundationDBBackup", ID: "fdbb", Kubernetes: "FoundationDBBackup", Summary: "FoundationDB backup", Queue: QueueFDB,
}

// Short activities of the FoundationDBBackup workflow, on FDBWorkflowTaskQueue. All may be repeated at any time and return the
// FDBBackupView after their effect.
var (
	// ObserveFDBBackup reads; it adds our finalizer where it is due.
	ObserveFDBBackup = Activity[ObjectStep, FDBBackupView]{"observe-fdb-backup", "Read the backup, its cluster and its Secret"}
	// ApplyFDBAgents creates the agents' Deployment, or makes it what the spec says.
	ApplyFDBAgents = Activity[ObjectStep, FDBBackupView]{"apply-fdb-agents", "Make the agents' Deployment match the spec"}
	// PlanFDBBackup writes where the next backup goes, before it is started.
	PlanFDBBackup = Activity[FDBPlan, FDBBackupView]{"plan-fdb-backup", "Record the backup's destination"}
	// PublishFDBBackup writes what a pass found into the status.
	PublishFDBBackup = Activity[FDBFindings, FDBBackupView]{"publish-fdb-backup", "Write the status"}
	// ReleaseFDBBackup removes our finalizers from an object that is being deleted.
	ReleaseFDBBackup = Activity[FDBRelease, FDBBackupView]{"release-fdb-backup", "Remove the finalizers"}
)

// Activities that run FoundationDB's tools, on FDBTaskQueue.
var (
	// InspectFDBBackup reads the backup's state. It changes nothing in the database.
	InspectFDBBackup = Activity[FDBInspect, FDBInspection]{"inspect-fdb-backup", "Read the backup's state from FoundationDB"}
	// RunFDBCommand reads the state first, and does nothing that is already done or no longer due. Only the owner of the
	// FoundationDB cluster schedules it, one at a time.
	RunFDBCommand = Activity[FDBCommand, FDBOutcome]{Name: "run-fdb-command"}
)

// FDBTaskQueue returns the queue of a Kubernetes cluster's activities that run FoundationDB's tools.
func FDBTaskQueue(cluster string) string { return "holdfast-fdb-" + cluster }

// FDBWorkflowTaskQueue returns the queue of a Kubernetes cluster's workflows of FoundationDB and of their short activities. No
// cluster's ID has a dot: the queue is never another cluster's FDBTaskQueue.
func FDBWorkflowTaskQueue(cluster string) string { return FDBTaskQueue(cluster) + ".workflows" }

// SharedTaskQueue is the queue of what several Kubernetes clusters have in common: the owners of FoundationDB clusters, and the
// guards of containers.
const SharedTaskQueue = "holdfast-shared"

// FDBBackupInput starts, and continues, the workflow of one FoundationDBBackup.
type FDBBackupInput struct {
	ObjectInput
	// Memory is what a run hands over to the next.
	Memory FDBMemory `json:"memory,omitzero"`
}

// FDBMemory is what a workflow knows and cannot read from any object or database.
type FDBMemory struct {
	// Slot says whether the backup waits for a slot, or has one.
	Slot FDBSlot `json:"slot,omitempty"`
	// Progress is the last progress of the first snapshot that was seen, in bytes, and ProgressAt when, in Unix seconds.
	Progress   int64 `json:"progress,omitempty"`
	ProgressAt int64 `json:"progressAt,omitempty"`
	// Starting: a start was requested, and no inspection has shown since whether it had an effect.
	Starting bool `json:"starting,omitempty"`
	// Stalled: the first snapshot made no progress for --fdb-initial-snapshot-timeout, and the backup gave its slot back.
	Stalled bool `json:"stalled,omitempty"`
	// Quiet counts the inspections in a row that found nothing new.
	Quiet int `json:"quiet,omitempty"`
	// Owner is the FoundationDB cluster whose owner knows of this backup.
	Owner string `json:"owner,omitempty"`
	// Opposed are the members, by name, that want the opposite of the agents, as the owner last answered.
	Opposed []string `json:"opposed,omitempty"`
	// Paused: the agents were paused for this backup.
	Paused bool `json:"paused,omitempty"`
	// UnreachableSince is when, in Unix seconds, a backup being deleted was first found unreachable; 0 when it answers.
	UnreachableSince int64 `json:"unreachableSince,omitempty"`
	// Reported is the job that the queue of expirations knows of, and ReportedAt when it was sent, in Unix seconds.
	Reported   FDBJob `json:"reported,omitempty"`
	ReportedAt int64  `json:"reportedAt,omitempty"`
	// Used are the containers whose guards know, or may know, of this backup.
	Used []string `json:"used,omitempty"`
	// Result is that of the last turn, until the status shows it or the object has gone.
	Result *FDBExpiryResult `json:"result,omitempty"`
}

// FDBSlot says whether a backup waits for a slot, or has one.
type FDBSlot string

// The states of a slot.
const (
	// FDBSlotUnknown: the throttle may remember an earlier run.
	FDBSlotUnknown   FDBSlot = ""
	FDBSlotNone      FDBSlot = "none"
	FDBSlotRequested FDBSlot = "requested"
	FDBSlotGranted   FDBSlot = "granted"
)

// FDBPlan is the input of PlanFDBBackup: an entry of status.backups for the backup that is about to be started.
type FDBPlan struct {
	Ref        `json:"ref"`
	Generation int64 `json:"generation"`
	// At is the time of the start, in Unix seconds; it becomes a part of the backup's path.
	At int64 `json:"at"`
}

// FDBFindings is the input of PublishFDBBackup: what a pass found, for the status.
type FDBFindings struct {
	Ref        `json:"ref"`
	Generation int64          `json:"generation"`
	Conditions []FDBCondition `json:"conditions,omitempty"`
	Backups    []FDBBackup    `json:"backups,omitempty"`
	// Expiry is how a turn ended, for status.expiry; nil if nothing is new. ExpiryAlone: nothing else of the status is written.
	Expiry      *FDBExpiryResult `json:"expiry,omitempty"`
	ExpiryAlone bool             `json:"expiryAlone,omitempty"`
}

// FDBRelease is the input of ReleaseFDBBackup, which removes the finalizer for stopping and, with Data, the one for the
// data.
type FDBRelease struct {
	Ref `json:"ref"`
	// Abandoned is empty if the backup was aborted, and otherwise says, for the Event, why it was left.
	Abandoned string `json:"abandoned,omitempty"`
	Data      bool   `json:"data,omitempty"`
	// Reason and Note say, for the Event, what happened to the data, with Data. Warning: the Event is a Warning.
	Reason  string `json:"reason,omitempty"`
	Note    string `json:"note,omitempty"`
	Warning bool   `json:"warning,omitempty"`
	// DataKept are the URLs of data that stay although they were to be deleted.
	DataKept []string `json:"left,omitempty"`
}

// FDBCondition is a condition that holds now, without its time.
type FDBCondition struct {
	Type    string `json:"type"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// FDBBackup is one backup in the store, as status.backups shows it.
type FDBBackup struct {
	Tag       string    `json:"tag"`
	URL       string    `json:"url"`
	State     string    `json:"state,omitempty"`
	KeyRanges []string  `json:"keyRanges,omitempty"`
	Oldest    *FDBPoint `json:"oldest,omitempty"`
	Latest    *FDBPoint `json:"latest,omitempty"`
}

// FDBPoint is a version and, if known, its time in Unix seconds.
type FDBPoint struct {
	Version int64 `json:"version"`
	Time    int64 `json:"time,omitempty"`
}

// FDBBackupView is what was read from Kubernetes about a FoundationDBBackup: plain facts. It holds no secret.
type FDBBackupView struct {
	// Found is false when no object of that UID exists.
	Found bool `json:"found"`
	// BeingDeleted: it has a deletion timestamp. Held: it has our finalizer.
	BeingDeleted bool `json:"beingDeleted,omitempty"`
	Held         bool `json:"held,omitempty"`
	// DeleteWanted: it has our finalizer for the data. DeletionRequested: the spec asks for the deletion of the data.
	DeleteWanted      bool `json:"deleteWanted,omitempty"`
	DeletionRequested bool `json:"deletionRequested,omitempty"`
	// Policy: the spec says when data may be expired.
	Policy bool `json:"policy,omitempty"`
	// Expiry is the last turn as status.expiry shows it; nil before the first turn.
	Expiry *FDBExpiryView `json:"expiry,omitempty"`
	// NamespaceEnding: the namespace is being deleted.
	NamespaceEnding bool  `json:"namespaceEnding,omitempty"`
	Generation      int64 `json:"generation,omitempty"`
	// Observed: the status is of this generation. Reconciled: its conditions also say that all is as the spec says.
	Observed   bool `json:"observed,omitempty"`
	Reconciled bool `json:"reconciled,omitempty"`
	// Owner is the description:id of the FoundationDB cluster; empty if its connection string is not known.
	Owner string `json:"owner,omitempty"`
	// ClusterGone: there is no FoundationDBCluster of that name.
	ClusterGone bool `json:"clusterGone,omitempty"`
	// Problem is the condition that keeps every command from being run; nil if there is none.
	Problem *FDBCondition `json:"problem,omitempty"`
	// Desired is what the spec asks for.
	Desired FDBDesired `json:"desired"`
	// Backups are the entries of status.backups, which Holdfast alone writes.
	Backups []FDBBackup   `json:"backups,omitempty"`
	Agents  FDBAgentsView `json:"agents"`
	// ObjectiveChanges is when the verdict on the objective changes if nothing happens, in Unix seconds; 0 if it does not.
	ObjectiveChanges int64 `json:"objectiveChanges,omitempty"`
}

// FDBExpiryView is what status.expiry says of the last turn.
type FDBExpiryView struct {
	Turn    int64  `json:"turn,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// FDBDesired is what a spec asks for, its defaults filled in.
type FDBDesired struct {
	// State is what the spec wants of the backup: Running, Paused or Stopped.
	State string `json:"state,omitempty"`
	Tag   string `json:"tag,omitempty"`
	// URL is the destination with its parameters, without the time of a start.
	URL string `json:"url,omitempty"`
	// TimestampFormat is the layout, as in Go, of the time of a start, which follows the URL; empty for none.
	TimestampFormat       string   `json:"timestampFormat,omitempty"`
	KeyRanges             []string `json:"keyRanges,omitempty"`
	SnapshotPeriodSeconds int64    `json:"snapshotPeriodSeconds,omitempty"`
}

// FDBAgentsView describes the agents' Deployment.
type FDBAgentsView struct {
	Exists bool `json:"exists,omitempty"`
	// Ours: the FoundationDBBackup of that UID controls it.
	Ours bool `json:"ours,omitempty"`
	// Current: it is as the spec says.
	Current bool `json:"current,omitempty"`
	// RolledOut: all its pods are of the present template and ready.
	RolledOut bool  `json:"rolledOut,omitempty"`
	Wanted    int32 `json:"wanted,omitempty"`
	Ready     int32 `json:"ready,omitempty"`
	// Invalid says why the Deployment cannot be made as the spec says; empty if it can.
	Invalid string `json:"invalid,omitempty"`
	// Refused says why the API server refused the Deployment in this step; empty if it was not called or accepted it.
	Refused string `json:"refused,omitempty"`
}

// FDBInspect is the input of InspectFDBBackup, which reads the state of a backup's tags in the database and, with Deep, of its
// containers in the object store.
type FDBInspect struct {
	Ref  ObjectRef `json:"ref"`
	Deep bool      `json:"deep,omitempty"`
}

// FDBInspection is what FoundationDB's tools report.
type FDBInspection struct {
	// Failure is set when the database could not be read; nothing else is then.
	Failure *FDBFailure `json:"failure,omitempty"`
	// AgentsPaused: all agents of the cluster are paused.
	AgentsPaused bool `json:"agentsPaused,omitempty"`
	// Tags are the tags of the spec and of status.backups, in the order of their names.
	Tags []FDBTag `json:"tags,omitempty"`
	// Containers are those of status.backups and of the running backups; only with Deep.
	Containers []FDBContainer `json:"containers,omitempty"`
}

// FDBTag is the state of a tag, as `fdbbackup status` reports it.
type FDBTag struct {
	Tag string `json:"tag"`
	// UID is the backup's in FoundationDB; empty if the tag was never used.
	UID string `json:"uid,omitempty"`
	// State is Status.Name of the tool's output: NeverRan, Submitted, Running, RunningDifferentially, Completed, Aborted, Aborting
	// or Errored.
	State string `json:"state,omitempty"`
	// Running is true for Submitted and Aborting too.
	Running    bool `json:"running,omitempty"`
	Restorable bool `json:"restorable,omitempty"`
	// URL is DestinationURL of the tool's output, without anything secret.
	URL string `json:"url,omitempty"`
	// SnapshotPeriodSeconds is 0 while the tool does not report it (Submitted).
	SnapshotPeriodSeconds int64 `json:"snapshotPeriodSeconds,omitempty"`
	// RangeBytes is how much of snapshots was written: the first one's progress.
	RangeBytes int64 `json:"rangeBytes,omitempty"`
	// Latest is the latest restorable point that the database knows of.
	Latest *FDBPoint `json:"latest,omitempty"`
	// Errors are the recent ones, of the text form, bounded and redacted; the JSON form never has any.
	Errors []string `json:"errors,omitempty"`
}

// FDBContainer is what a deep describe of a container reported.
type FDBContainer struct {
	URL string `json:"url"`
	// Missing: there is no such container.
	Missing    bool        `json:"missing,omitempty"`
	Failure    *FDBFailure `json:"failure,omitempty"`
	Restorable bool        `json:"restorable,omitempty"`
	Oldest     *FDBPoint   `json:"oldest,omitempty"`
	Latest     *FDBPoint   `json:"latest,omitempty"`
	// LogEnd is the end of the log of changes, up to its first gap. Latest may be a snapshot beyond it.
	LogEnd *FDBPoint `json:"logEnd,omitempty"`
}

// FDBFailure is a failure of a tool, in words for people: bounded, and without anything secret.
type FDBFailure struct {
	Class   FDBClass `json:"class"`
	Message string   `json:"message"`
}

// FDBClass sorts the failures of FoundationDB's tools, which have no error codes.
type FDBClass string

// The classes of failures.
const (
	// FDBClassTimeout: killed at its limit; the cluster or the store does not answer, or the worker was stopped.
	FDBClassTimeout FDBClass = "Timeout"
	// FDBClassAlreadyRunning: a backup is running on the tag.
	FDBClassAlreadyRunning FDBClass = "AlreadyRunning"
	// FDBClassNotRunning: no backup is running on the tag.
	FDBClassNotRunning FDBClass = "NotRunning"
	// FDBClassMissing: there is no such container.
	FDBClassMissing FDBClass = "BackupMissing"
	// FDBClassBadURL: the tool does not accept the URL.
	FDBClassBadURL FDBClass = "BadURL"
	// FDBClassUsed: the container has data already; a backup into it could not be restored.
	FDBClassUsed FDBClass = "ContainerUsed"
	// FDBClassDenied: the store refuses the credentials.
	FDBClassDenied FDBClass = "AccessDenied"
	// FDBClassStore: the store cannot be written or read for another reason.
	FDBClassStore FDBClass = "StoreFailed"
	// FDBClassUnsafe: an expiration would leave too little.
	FDBClassUnsafe FDBClass = "Unsafe"
	// FDBClassFuture: the database's last backup was started at a time that is in the future.
	FDBClassFuture FDBClass = "LastStartInFuture"
	// FDBClassLocked: the database is locked, for example by a restore.
	FDBClassLocked FDBClass = "DatabaseLocked"
	// FDBClassClusterFile: the connection string is malformed.
	FDBClassClusterFile FDBClass = "BadClusterFile"
	// FDBClassToolMissing: there is no binary for the cluster's version.
	FDBClassToolMissing FDBClass = "ToolMissing"
	// FDBClassNoWorker: no worker accepted the activity in time, and it was not run: none serves the queue, or all are busy.
	FDBClassNoWorker FDBClass = "NoWorker"
	// FDBClassOther: anything else.
	FDBClassOther FDBClass = "Failed"
)

// FDBBackupState answers QueryState. What is awaited, and from whom, is in the workflow's current details.
type FDBBackupState struct {
	View   FDBBackupView `json:"view"`
	Seen   FDBInspection `json:"seen"`
	Memory FDBMemory     `json:"memory"`
}
