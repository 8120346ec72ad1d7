package contract

// KindFDBBackup serves one FoundationDBBackup. Input: FDBBackupInput, no result.
var KindFDBBackup = Kind{
	Workflow: "FoundationDBBackup", ID: "fdbb", Kubernetes: "FoundationDBBackup", Summary: "FoundationDB backup", Queue: QueueFDB,
}

// Short activities of the FoundationDBBackup workflow, on FDBWorkflowTaskQueue. All may be repeated at any time and return the
// FDBBackupView after their effect.
var (
	// ObserveFDBBackup reads; it adds our finalizer where it is due.
	ObserveFDBBackup = Activity[FDBBackupStep, FDBBackupView]{"observe-fdb-backup", "Read the backup, its cluster and its Secret"}
	// ApplyFDBAgents makes the agents' Deployment what the spec says.
	ApplyFDBAgents = Activity[FDBBackupStep, FDBBackupView]{"apply-fdb-agents", "Make the agents' Deployment as the spec says"}
	// PlanFDBBackup writes where the next backup goes, before it is started.
	PlanFDBBackup = Activity[FDBPlan, FDBBackupView]{"plan-fdb-backup", "Write down where the backup goes"}
	// PublishFDBBackup writes what a pass found into the status.
	PublishFDBBackup = Activity[FDBFindings, FDBBackupView]{"publish-fdb-backup", "Write the status"}
	// ReleaseFDBBackup takes our finalizer off an object that is being deleted.
	ReleaseFDBBackup = Activity[FDBRelease, FDBBackupView]{"release-fdb-backup", "Let the object go"}
)

// Activities that run FoundationDB's tools, on FDBTaskQueue.
var (
	// InspectFDBBackup changes nothing in the database.
	InspectFDBBackup = Activity[FDBInspect, FDBInspection]{"inspect-fdb-backup", "Ask FoundationDB for the backup's state"}
	// RunFDBCommand reads the state first and does nothing that is done already or has become undue. Only the owner of the
	// FoundationDB cluster schedules it, one at a time.
	RunFDBCommand = Activity[FDBCommand, FDBOutcome]{Name: "run-fdb-command"}
)

// FDBTaskQueue returns the queue of a Kubernetes cluster's activities that run FoundationDB's tools.
func FDBTaskQueue(cluster string) string { return "holdfast-fdb-" + cluster }

// FDBWorkflowTaskQueue returns the queue of a Kubernetes cluster's workflows of FoundationDB and of their short activities. No
// cluster's ID has a dot: the queue is never another cluster's FDBTaskQueue.
func FDBWorkflowTaskQueue(cluster string) string { return FDBTaskQueue(cluster) + ".workflows" }

// SharedTaskQueue is the queue of what several Kubernetes clusters have in common: the owners of FoundationDB clusters.
const SharedTaskQueue = "holdfast-shared"

// FDBBackupInput starts, and continues, the workflow of one FoundationDBBackup.
type FDBBackupInput struct {
	ObjectInput
	// Memory is what a run leaves to the next.
	Memory FDBMemory `json:"memory,omitzero"`
}

// FDBMemory is what cannot be read anywhere.
type FDBMemory struct {
	// Slot is what is known of the place among the first snapshots.
	Slot FDBSlot `json:"slot,omitempty"`
	// Progress and ProgressAt (Unix seconds) are the first snapshot's last progress that was seen.
	Progress   int64 `json:"progress,omitempty"`
	ProgressAt int64 `json:"progressAt,omitempty"`
	// Starting: a start was asked for, and no look has told since whether it had its effect.
	Starting bool `json:"starting,omitempty"`
	// Stalled: it has not moved for --fdb-initial-snapshot-timeout and has given its slot back.
	Stalled bool `json:"stalled,omitempty"`
	// Quiet counts looks in a row that found nothing new.
	Quiet int `json:"quiet,omitempty"`
	// Owner is the FoundationDB cluster whose owner knows of this backup.
	Owner string `json:"owner,omitempty"`
	// Opposed are those who, as the owner last said, want the opposite of the agents.
	Opposed []string `json:"opposed,omitempty"`
	// Paused: the agents were paused for this backup.
	Paused bool `json:"paused,omitempty"`
	// UnreachableSince is when, in Unix seconds, a backup being deleted was first found unreachable; 0 when it answers.
	UnreachableSince int64 `json:"unreachableSince,omitempty"`
	// Reported is what the queue of expirations knows, and ReportedAt since when, in Unix seconds.
	Reported   FDBJob `json:"reported,omitempty"`
	ReportedAt int64  `json:"reportedAt,omitempty"`
	// Used are the containers whose guards know, or may know, of this backup.
	Used []string `json:"used,omitempty"`
	// Result is that of the last turn until the status tells it, or the object has gone.
	Result *FDBExpiryResult `json:"result,omitempty"`
}

// FDBSlot is where a backup is on its way to a first snapshot.
type FDBSlot string

// The states of a slot.
const (
	// FDBSlotUnknown: the throttle may remember an earlier run.
	FDBSlotUnknown   FDBSlot = ""
	FDBSlotNone      FDBSlot = "none"
	FDBSlotRequested FDBSlot = "requested"
	FDBSlotGranted   FDBSlot = "granted"
)

// FDBBackupStep is the input of the activities that need nothing but the object.
type FDBBackupStep struct {
	Ref ObjectRef `json:"ref"`
}

// FDBPlan asks for an entry in status.backups for the backup that is about to be started.
type FDBPlan struct {
	Ref        ObjectRef `json:"ref"`
	Generation int64     `json:"generation"`
	// At is the time, in Unix seconds, that the backup's path carries.
	At int64 `json:"at"`
}

// FDBFindings are what a pass found, for the status.
type FDBFindings struct {
	Ref        ObjectRef      `json:"ref"`
	Generation int64          `json:"generation"`
	Conditions []FDBCondition `json:"conditions,omitempty"`
	Backups    []FDBBackup    `json:"backups,omitempty"`
	// Expiry is how a turn ended, for status.expiry; nil if nothing is new. ExpiryAlone: the generation and the conditions stay as
	// they are.
	Expiry      *FDBExpiryResult `json:"expiry,omitempty"`
	ExpiryAlone bool             `json:"expiryAlone,omitempty"`
}

// FDBRelease says which finalizers are taken off, and why: the one for stopping, and with Data the one for the data too.
type FDBRelease struct {
	Ref ObjectRef `json:"ref"`
	// Abandoned is empty if the backup was aborted, and otherwise says, for the Event, why it was left.
	Abandoned string `json:"abandoned,omitempty"`
	Data      bool   `json:"data,omitempty"`
	// Reason and Note say, for the Event, what became of the data, with Data. Warning: it is no good news.
	Reason  string `json:"reason,omitempty"`
	Note    string `json:"note,omitempty"`
	Warning bool   `json:"warning,omitempty"`
	// Left are the URLs of data that stay although they were to be deleted.
	Left []string `json:"left,omitempty"`
}

// FDBCondition is a condition that holds, without its time.
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

// FDBBackupView is what Kubernetes says of a FoundationDBBackup: plain facts, read live. It holds no secret.
type FDBBackupView struct {
	// Found is false when no object of that UID exists.
	Found bool `json:"found"`
	// BeingDeleted: it has a deletion timestamp. Held: it has our finalizer.
	BeingDeleted bool `json:"beingDeleted,omitempty"`
	Held         bool `json:"held,omitempty"`
	// DeleteWanted: it has our finalizer for the data. DeletionRequested: the spec asks for that.
	DeleteWanted      bool `json:"deleteWanted,omitempty"`
	DeletionRequested bool `json:"deletionRequested,omitempty"`
	// Policy: the spec says when data may be expired.
	Policy bool `json:"policy,omitempty"`
	// Expiry is status.expiry; nil before the first turn.
	Expiry *FDBExpiryView `json:"expiry,omitempty"`
	// NamespaceEnding: the namespace is being deleted.
	NamespaceEnding bool  `json:"namespaceEnding,omitempty"`
	Generation      int64 `json:"generation,omitempty"`
	// Observed: the status speaks of this generation. Reconciled: and says that all is as it should be.
	Observed   bool `json:"observed,omitempty"`
	Reconciled bool `json:"reconciled,omitempty"`
	// Owner is the description:id of the FoundationDB cluster; empty if it is not known how to reach it.
	Owner string `json:"owner,omitempty"`
	// ClusterGone: there is no FoundationDBCluster of that name.
	ClusterGone bool `json:"clusterGone,omitempty"`
	// Problem is what keeps every command from being run, as a condition.
	Problem *FDBCondition `json:"problem,omitempty"`
	// Desired is what the spec asks for.
	Desired FDBDesired `json:"desired"`
	// Backups are status.backups.
	Backups []FDBBackup   `json:"backups,omitempty"`
	Agents  FDBAgentsView `json:"agents"`
}

// FDBExpiryView is what status.expiry says of the last turn.
type FDBExpiryView struct {
	Turn    int64  `json:"turn,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// FDBDesired is what a spec asks for, its defaults filled in.
type FDBDesired struct {
	// State is spec.backupState.
	State string `json:"state,omitempty"`
	Tag   string `json:"tag,omitempty"`
	// URL is the destination with its parameters, without the time of a start.
	URL string `json:"url,omitempty"`
	// TimestampFormat is Go's; empty adds nothing.
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
	// Refused says why the API server did not take it in this step; empty if it was not asked.
	Refused string `json:"refused,omitempty"`
}

// FDBInspect asks for the state of a backup's tags in the database and, with Deep, of its containers in the store.
type FDBInspect struct {
	Ref  ObjectRef `json:"ref"`
	Deep bool      `json:"deep,omitempty"`
}

// FDBInspection is what FoundationDB's tools say.
type FDBInspection struct {
	// Failure is set when the database could not be asked; nothing else is then.
	Failure *FDBFailure `json:"failure,omitempty"`
	// AgentsPaused: all agents of the cluster are paused.
	AgentsPaused bool `json:"agentsPaused,omitempty"`
	// Tags are the tags of the spec and of status.backups, in the order of their names.
	Tags []FDBTag `json:"tags,omitempty"`
	// Containers are those of status.backups and of the running backups; only with Deep.
	Containers []FDBContainer `json:"containers,omitempty"`
}

// FDBTag is the state of a tag, as `fdbbackup status` tells it.
type FDBTag struct {
	Tag string `json:"tag"`
	// UID is that of the backup; empty if the tag was never used.
	UID string `json:"uid,omitempty"`
	// State is Status.Name: NeverRan, Submitted, Running, RunningDifferentially, Completed, Aborted, Aborting or Errored.
	State string `json:"state,omitempty"`
	// Running is true for Submitted and Aborting too.
	Running    bool `json:"running,omitempty"`
	Restorable bool `json:"restorable,omitempty"`
	// URL is DestinationURL without anything secret.
	URL string `json:"url,omitempty"`
	// SnapshotPeriodSeconds is 0 while the tool does not tell it (Submitted).
	SnapshotPeriodSeconds int64 `json:"snapshotPeriodSeconds,omitempty"`
	// RangeBytes is how much of snapshots was written: the first one's progress.
	RangeBytes int64 `json:"rangeBytes,omitempty"`
	// Latest is the latest restorable point that the database knows of.
	Latest *FDBPoint `json:"latest,omitempty"`
	// Errors are the recent ones, of the text form, bounded and redacted; the JSON form never has any.
	Errors []string `json:"errors,omitempty"`
}

// FDBContainer is what a deep describe of a container told.
type FDBContainer struct {
	URL string `json:"url"`
	// Missing: there is none.
	Missing    bool        `json:"missing,omitempty"`
	Failure    *FDBFailure `json:"failure,omitempty"`
	Restorable bool        `json:"restorable,omitempty"`
	Oldest     *FDBPoint   `json:"oldest,omitempty"`
	Latest     *FDBPoint   `json:"latest,omitempty"`
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
	// FDBClassBadURL: the tool does not take the URL.
	FDBClassBadURL FDBClass = "BadURL"
	// FDBClassUsed: the container has data already; a backup into it could not be restored.
	FDBClassUsed FDBClass = "ContainerUsed"
	// FDBClassDenied: the store refuses the credentials.
	FDBClassDenied FDBClass = "AccessDenied"
	// FDBClassStore: the store cannot be written or read for another reason.
	FDBClassStore FDBClass = "StoreFailed"
	// FDBClassUnsafe: an expiration would leave too little.
	FDBClassUnsafe FDBClass = "Unsafe"
	// FDBClassLocked: the database is locked, for example by a restore.
	FDBClassLocked FDBClass = "DatabaseLocked"
	// FDBClassClusterFile: the connection string is not one.
	FDBClassClusterFile FDBClass = "BadClusterFile"
	// FDBClassToolMissing: there is no binary for the cluster's version.
	FDBClassToolMissing FDBClass = "ToolMissing"
	// FDBClassNoWorker: no worker took the work in time, and it was not run: none serves the queue, or all are busy.
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
