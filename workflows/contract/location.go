package contract

// KindLocation serves one NonAdminBackupStorageLocation. Input: ObjectInput, no result.
var KindLocation = Kind{
	Workflow: "NonAdminBackupStorageLocation", ID: "nabsl", Kubernetes: "NonAdminBackupStorageLocation", Summary: "Storage location",
}

type locationActivity = Activity[ObjectStep, LocationView]

// Activities of the NonAdminBackupStorageLocation workflow. Each takes an ObjectStep, returns the LocationView after its
// effect, and may be repeated at any time.
var (
	RefreshLocation  = locationActivity{"refresh-location", "Read the location and mirror Velero's status"}
	AdmitLocation    = locationActivity{"admit-location", "Validate the spec and request approval"}
	SyncLocation     = locationActivity{"sync-location", "Copy the Secret and write the Velero BackupStorageLocation"}
	WithdrawLocation = locationActivity{"withdraw-location", "Remove the Velero BackupStorageLocation and the Secret"}
	DeleteLocation   = locationActivity{"delete-location", "Delete all that was made for the location"}
	ReleaseLocation  = locationActivity{"release-location", "Remove the finalizer"}
)

// Approval says how far the administrator's approval of a storage location has come.
type Approval string

// The states of an approval.
const (
	// ApprovalUnknown: not determined, because the spec is not valid.
	ApprovalUnknown Approval = ""
	// ApprovalNotRequired: the policy requires none.
	ApprovalNotRequired Approval = "notRequired"
	// ApprovalNotRequested: the present spec needs a decision, and the approval request does not hold it yet: nobody can decide.
	ApprovalNotRequested Approval = "notRequested"
	// ApprovalPending: the present spec waits for a decision.
	ApprovalPending Approval = "pending"
	// ApprovalApproved: the present spec, but for its credential, is the approved one.
	ApprovalApproved Approval = "approved"
	// ApprovalRejected: the present spec was rejected.
	ApprovalRejected Approval = "rejected"
)

// LocationView is what decides the next step for a NonAdminBackupStorageLocation: plain facts, read live.
type LocationView struct {
	// Found is false when no object of that UID exists; every other field but Remains and Held is then zero.
	Found bool `json:"found"`
	// Phase is the object's status.phase, which Holdfast alone writes: New, BackingOff, Created or Deleting.
	Phase string `json:"phase,omitempty"`
	// BeingDeleted: the object has a deletion timestamp. NamespaceTerminating is read only then.
	BeingDeleted         bool `json:"beingDeleted,omitempty"`
	NamespaceTerminating bool `json:"namespaceTerminating,omitempty"`
	// Finalizer: our finalizer is on the object.
	Finalizer bool `json:"finalizer,omitempty"`
	// SpecValidated: the Accepted condition is of this generation and, in BackingOff, validating again would give the same.
	SpecValidated bool `json:"specJudged,omitempty"`
	// Accepted: the Accepted condition is True.
	Accepted bool `json:"accepted,omitempty"`
	// Message is the Accepted condition's message, if the condition is False.
	Message string `json:"message,omitempty"`
	// Approval is that of the present spec.
	Approval Approval `json:"approval,omitempty"`
	// Requested: the approval request exists, or none is needed.
	Requested bool `json:"requested,omitempty"`
	// InForce: a spec is in force: the present one, or the one that was approved before it.
	InForce bool `json:"inForce,omitempty"`
	// Kept: what was made stays as it is for now: only an invalid edit keeps the spec from being in force, somebody else's object
	// is in the way, or there is no usable Secret to copy.
	Kept bool `json:"kept,omitempty"`
	// Synced: the objects in the OADP namespace are what the spec in force asks for; none exist if none is in force.
	Synced bool `json:"synced,omitempty"`
	// CopyMade: the copy of the Secret was made in this step, and Velero may not see it yet. If Velero sees the location first, it
	// calls it Unavailable until its next check, a minute later.
	CopyMade bool `json:"copyMade,omitempty"`
	// Shown: the status shows the present state.
	Shown bool `json:"shown,omitempty"`
	// Remains counts what is still to be deleted: the request, the Secret, the BackupStorageLocation, and NonAdminBackups
	// whose deletion is not yet requested. It is counted only while the object is being deleted.
	Remains int `json:"remains,omitempty"`
	// Held names those that were deleted and still exist, held by somebody else's finalizer. For people.
	Held string `json:"held,omitempty"`
	// Velero describes the Velero BackupStorageLocation.
	Velero VeleroLocationView `json:"velero"`
}

// VeleroLocationView describes a Velero BackupStorageLocation.
type VeleroLocationView struct {
	Exists bool   `json:"exists,omitempty"`
	Name   string `json:"name,omitempty"`
	Phase  string `json:"phase,omitempty"`
}
