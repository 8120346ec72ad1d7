package contract

import "time"

// KindRestore serves one NonAdminRestore. Input: RestoreInput, no result.
var KindRestore = Kind{Workflow: "NonAdminRestore", ID: "nar", Kubernetes: "NonAdminRestore", Summary: "Restore"}

// MetricRestorePhase measures how long a Velero Restore was in each of Velero's phases, tagged with phase. The workflow records
// it, as MetricResourceTimeouts.
const MetricRestorePhase = "holdfast_restore_phase_seconds"

type restoreActivity = Activity[RestoreStep, RestoreView]

// Activities of the NonAdminRestore workflow. Each takes a RestoreStep, returns the RestoreView after its effect, and may
// be repeated at any time.
var (
	RefreshRestore    = restoreActivity{"refresh-restore", "Read the restore and mirror Velero's status"}
	StartRestore      = restoreActivity{"start-restore", "Validate the spec and create the Velero Restore"}
	AdmitRestore      = restoreActivity{"admit-restore", "Validate the spec"}
	CheckRestoreStall = restoreActivity{"check-velero-restore-stall", "Check whether Velero has finished without recording it"}
	DeleteRestore     = restoreActivity{"delete-velero-restore", "Delete the Velero Restore"}
	ReleaseRestore    = restoreActivity{"release-restore", "Remove the finalizer"}
)

// RestoreInput starts, and continues, the workflow of one NonAdminRestore.
type RestoreInput struct {
	ObjectInput
	// VeleroPhase is Velero's phase as it was last seen, and VeleroPhaseSince when it was seen first.
	VeleroPhase      string    `json:"veleroPhase,omitempty"`
	VeleroPhaseSince time.Time `json:"veleroPhaseSince,omitzero"`
	// Volumes: a signal had VeleroChanged.Volumes set.
	Volumes bool `json:"volumes,omitempty"`
	// Turn is the turn before Velero that was given last.
	Turn Turn `json:"turn,omitzero"`
}

// RestoreStep is the input of every activity that serves a NonAdminRestore.
type RestoreStep struct {
	Ref `json:"ref"`
	// Volumes: the restore has PodVolumeRestores or DataDownloads to be counted; RefreshRestore lists them only then.
	Volumes bool `json:"volumes,omitempty"`
	// Turn is the turn before Velero; without one that is usable no Velero object is made while the policy limits them.
	Turn UsableTurn `json:"turn,omitzero"`
}

// RestoreView is what decides the next step for a NonAdminRestore: plain facts, read live, small enough for a history.
type RestoreView struct {
	// Found is false when no object of that UID exists; every other field is then zero.
	Found bool `json:"found"`
	// Phase is the object's status.phase, which Holdfast alone writes: New, BackingOff, Created or Deleting.
	Phase string `json:"phase,omitempty"`
	// BeingDeleted: the object has a deletion timestamp. NamespaceTerminating is read only then.
	BeingDeleted         bool `json:"beingDeleted,omitempty"`
	NamespaceTerminating bool `json:"namespaceTerminating,omitempty"`
	// Finalizer: our finalizer is on the object.
	Finalizer bool `json:"finalizer,omitempty"`
	// Marked: the status announces the deletion.
	Marked bool `json:"marked,omitempty"`
	// SpecValidated: the Accepted condition is of this generation and, in BackingOff, validating again would give the same.
	SpecValidated bool `json:"specJudged,omitempty"`
	// Accepted: the Accepted condition is True.
	Accepted bool `json:"accepted,omitempty"`
	// EverCreated: the Velero Restore was created once; it is never created again.
	EverCreated bool `json:"everCreated,omitempty"`
	// AbsenceReported: the status says that the Velero Restore is gone.
	AbsenceReported bool `json:"absenceReported,omitempty"`
	// AwaitsTurn: Holdfast makes the Velero object once the object has its turn.
	AwaitsTurn bool `json:"awaitsTurn,omitempty"`
	// TurnUsed: the activity that returned this has made the Velero Restore with the turn.
	TurnUsed bool `json:"turnUsed,omitempty"`
	// FinalizationDue: Velero has restored what it could (Completed, PartiallyFailed), and the finalization has not ended.
	FinalizationDue bool `json:"finalizationDue,omitempty"`
	// Velero describes the Velero Restore that belongs to the object; somebody else's counts as absent.
	Velero VeleroRestoreView `json:"velero"`
}

// VeleroRestoreView describes a Velero Restore.
type VeleroRestoreView struct {
	Exists bool   `json:"exists,omitempty"`
	Name   string `json:"name,omitempty"`
	Phase  string `json:"phase,omitempty"`
	// Finished: Velero will not change it any more by itself.
	Finished bool `json:"finished,omitempty"`
	// Deleting: it has been deleted, and is there until Velero has removed its files from the object store.
	Deleting bool `json:"deleting,omitempty"`
	// AtWork: Velero is about to write to it. If it were deleted now, Velero would retry the write without success for minutes, and
	// all restores would wait.
	AtWork bool `json:"atWork,omitempty"`
	// MirroredPhase is Velero's phase as the object's status shows it.
	MirroredPhase string `json:"mirroredPhase,omitempty"`
	// ItemsRestored and TotalItems are Velero's progress.
	ItemsRestored int `json:"itemsRestored,omitempty"`
	TotalItems    int `json:"totalItems,omitempty"`
	// Stalled: the object store holds the results, and Velero has not updated its Restore for --velero-stall-timeout.
	Stalled bool `json:"stalled,omitempty"`
}
