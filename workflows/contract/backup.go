package contract

// KindBackup serves one NonAdminBackup; "nab" is the resource's short name. Input: BackupInput, no result.
var KindBackup = Kind{Workflow: "NonAdminBackup", ID: "nab", Kubernetes: "NonAdminBackup", Summary: "Backup of"}

type backupActivity = Activity[BackupStep, BackupView]

// Activities of the NonAdminBackup workflow. Each takes a BackupStep, returns the BackupView after its effect, and may
// be repeated at any time.
var (
	RefreshBackup       = backupActivity{"refresh-backup", "Read the backup, mirror Velero's status, start or delete it if due"}
	StartBackup         = backupActivity{"start-backup", "Validate the spec and create the Velero Backup"}
	CheckVeleroStall    = backupActivity{"check-velero-stall", "Check whether Velero has finished without recording it"}
	MarkBackupDeleting  = backupActivity{"mark-backup-deleting", "Announce the deletion"}
	RequestDeletion     = backupActivity{"request-velero-deletion", "Request from Velero that it delete the backup with its data"}
	WithdrawBackup      = backupActivity{"withdraw-velero-backup", "Withdraw the Velero Backup before it starts"}
	DeleteVeleroObjects = backupActivity{"delete-velero-objects", "Delete the Velero objects, keep the data"}
	ReleaseBackup       = backupActivity{"release-backup", "Remove the finalizer"}

	// RecordDigests reads the backup's archive. It is no step: nothing waits for it.
	RecordDigests = Activity[BackupStep, None]{"record-digests", "Record digests of the objects in the archive"}

	// AdmitBackup validates a spec that was edited after the creation, and adopts a Velero Backup that exists already.
	AdmitBackup = backupActivity{"admit-backup", "Validate the spec"}
)

// BackupInput starts, and continues, the workflow of one NonAdminBackup.
type BackupInput struct {
	ObjectInput
	// Volumes: a signal had VeleroChanged.Volumes set.
	Volumes bool `json:"volumes,omitempty"`
	// Drill is the last VeleroChanged.Drill whose verdict the backup may not show yet.
	Drill string `json:"drill,omitempty"`
	// Turn is the turn before Velero that was given last.
	Turn Turn `json:"turn,omitzero"`
}

// BackupStep is the input of every activity that serves a NonAdminBackup.
type BackupStep struct {
	Ref `json:"ref"`
	// Attempt numbers the DeleteBackupRequest that RequestDeletion makes, from 1; other activities ignore it.
	Attempt int `json:"attempt,omitempty"`
	// Volumes: the backup has PodVolumeBackups or DataUploads to be counted; RefreshBackup lists them only then.
	Volumes bool `json:"volumes,omitempty"`
	// Drill is BackupInput.Drill: RefreshBackup reads that RestoreDrill, and shows its verdict.
	Drill string `json:"drill,omitempty"`
	// Turn is the turn before Velero; without one that is usable no Velero object is made while the policy limits them.
	Turn UsableTurn `json:"turn,omitzero"`
}

// DeletionMark says which deletion the status of an object announces.
type DeletionMark string

// The deletions that a status can announce.
const (
	// MarkNone: the status announces no deletion.
	MarkNone DeletionMark = ""
	// MarkPending: deleted by a plain delete, waits for the user to say what becomes of the data.
	MarkPending DeletionMark = "pending"
	// MarkAccepted: spec.deleteBackup or spec.forceDeleteBackup is being carried out.
	MarkAccepted DeletionMark = "accepted"
)

// BackupView is what decides the next step for a NonAdminBackup: plain facts, read live, small enough for a history.
type BackupView struct {
	// Found is false when no object of that UID exists; every other field is then zero.
	Found bool `json:"found"`
	// Phase is the object's status.phase, which Holdfast alone writes: New, BackingOff, Created or Deleting.
	Phase string `json:"phase,omitempty"`
	// DeleteBackup: the tenant asks in the spec for the deletion of the backup with its data. ForceDelete: for that of the
	// Velero objects only.
	DeleteBackup bool `json:"deleteBackup,omitempty"`
	ForceDelete  bool `json:"forceDelete,omitempty"`
	// BeingDeleted: the object has a deletion timestamp. NamespaceTerminating is read only then.
	BeingDeleted         bool `json:"beingDeleted,omitempty"`
	NamespaceTerminating bool `json:"namespaceTerminating,omitempty"`
	// LocationGone: the tenant's storage location that holds the backup was deleted, and the object is being deleted by a
	// plain delete: that is handled as ForceDelete.
	LocationGone bool `json:"locationGone,omitempty"`
	// Finalizer: our finalizer is on the object.
	Finalizer bool `json:"finalizer,omitempty"`
	// Marked is the deletion that the status announces.
	Marked DeletionMark `json:"marked,omitempty"`
	// SpecValidated: the Accepted condition is of this generation and, in BackingOff, validating again would give the same.
	SpecValidated bool `json:"specJudged,omitempty"`
	// Accepted: the Accepted condition is True.
	Accepted bool `json:"accepted,omitempty"`
	// EverCreated: the Velero Backup was created once; it is never created again.
	EverCreated bool `json:"everCreated,omitempty"`
	// AbsenceReported: the status says that the Velero Backup is gone.
	AbsenceReported bool `json:"absenceReported,omitempty"`
	// AwaitsTurn: Holdfast makes the Velero object once the object has its turn.
	AwaitsTurn bool `json:"awaitsTurn,omitempty"`
	// TurnUsed: the activity that returned this has made the Velero Backup with the turn.
	TurnUsed bool `json:"turnUsed,omitempty"`
	// VerdictDue: a RestoreDrill has a verdict on the backup, and the status does not show it yet.
	VerdictDue bool `json:"verdictDue,omitempty"`
	// Velero describes the Velero Backup that belongs to the object; somebody else's counts as absent.
	Velero VeleroBackupView `json:"velero"`
	// DeleteRequest describes the newest DeleteBackupRequest for that Velero Backup.
	DeleteRequest DeleteRequestView `json:"deleteRequest"`
}

// VeleroBackupView describes a Velero Backup.
type VeleroBackupView struct {
	Exists bool   `json:"exists,omitempty"`
	Name   string `json:"name,omitempty"`
	Phase  string `json:"phase,omitempty"`
	// Finished: Velero will not change it any more by itself.
	Finished bool `json:"finished,omitempty"`
	// Unstarted: Velero has not begun it, and nothing of it is in the object store.
	Unstarted bool `json:"unstarted,omitempty"`
	// Running: Velero works on it, or is about to, and refuses to delete it.
	Running bool `json:"running,omitempty"`
	// MirroredPhase is Velero's phase as the object's status shows it.
	MirroredPhase string `json:"mirroredPhase,omitempty"`
	// ItemsBackedUp and TotalItems are Velero's progress.
	ItemsBackedUp int `json:"itemsBackedUp,omitempty"`
	TotalItems    int `json:"totalItems,omitempty"`
	// DigestsDue: the backup is complete, and digests of its objects are still to be recorded.
	DigestsDue bool `json:"digestsDue,omitempty"`
	// Stalled: the object store holds the finished backup, and Velero has not updated its Backup for --velero-stall-timeout.
	Stalled bool `json:"stalled,omitempty"`
}

// DeleteRequestView describes a DeleteBackupRequest.
type DeleteRequestView struct {
	// Attempt is the number of the newest request known, 0 if there was none.
	Attempt int `json:"attempt,omitempty"`
	// Exists: that request still exists.
	Exists bool `json:"exists,omitempty"`
	// Failed: Velero has answered it with errors, or has left it unfinished.
	Failed bool `json:"failed,omitempty"`
	// Error is the first of Velero's errors.
	Error string `json:"error,omitempty"`
}
