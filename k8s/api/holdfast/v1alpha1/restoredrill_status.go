package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// DrillPhase is how far a drill is.
//
// +kubebuilder:validation:Enum=Waiting;Preparing;Restoring;Checking;Kept;CleaningUp;Ended
type DrillPhase string

// The phases of a drill. One that is refused is Ended at once, and one that is being prepared may have to wait again.
const (
	// DrillWaiting: the drill waits for a place, for an older drill of its namespace, for the worker that makes its namespace, or
	// for its turn before Velero.
	DrillWaiting    DrillPhase = "Waiting"
	DrillPreparing  DrillPhase = "Preparing"
	DrillRestoring  DrillPhase = "Restoring"
	DrillChecking   DrillPhase = "Checking"
	DrillKept       DrillPhase = "Kept"
	DrillCleaningUp DrillPhase = "CleaningUp"
	DrillEnded      DrillPhase = "Ended"
)

// ConditionVerified is True if everything that a drill restored passed its checks, False if something did not, and Unknown before
// that, or if the backup could not be restored for a reason that says nothing about it.
const ConditionVerified = "Verified"

// ConditionQueued is False, with reason ReasonWaitingForTurn, while the drill waits for its turn before Velero.
const (
	ConditionQueued      = "Queued"
	ReasonWaitingForTurn = "WaitingForTurn"
)

// Reasons of Verified.
const (
	// ReasonVerified: True.
	ReasonVerified = "Verified"
	// ReasonVerifiedInPart: status.findings says what a drill does not verify. True.
	ReasonVerifiedInPart = "VerifiedInPart"
	// ReasonChecksFailed: status.findings says what is wrong. False.
	ReasonChecksFailed = "ChecksFailed"
	// ReasonRestoreFailed: Velero could not restore the backup, or not in time. False.
	ReasonRestoreFailed = "RestoreFailed"
	// ReasonDrillRunning: Unknown.
	ReasonDrillRunning = "Running"
	// ReasonNotVerified: the backup cannot be restored in this way now. Unknown.
	ReasonNotVerified = "NotVerified"
)

// VerdictReasons returns the reasons of Verified of a drill that has its verdict.
func VerdictReasons() []string {
	return []string{ReasonVerified, ReasonVerifiedInPart, ReasonChecksFailed, ReasonRestoreFailed, ReasonNotVerified}
}

// RestoreDrillStatus is what is known about a drill.
type RestoreDrillStatus struct {
	// observedGeneration is the generation that the conditions are about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// phase is how far the drill is: Waiting, Preparing, Restoring, Checking, Kept, CleaningUp or Ended.
	// +optional
	Phase DrillPhase `json:"phase,omitempty"`

	// conditions are the latest observations of the drill: Verified, and Queued while it waits for its turn before Velero.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// backup is the name of the NonAdminBackup that is restored.
	// +optional
	Backup string `json:"backup,omitempty"`
	// backupUID is the UID of that NonAdminBackup.
	// +optional
	BackupUID types.UID `json:"backupUID,omitempty"`
	// namespace is the drill's own namespace, into which the backup is restored. It is deleted when the drill ends.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// started is when Velero was given the restore. spec.timeout counts from when Velero begins it.
	// +optional
	Started *metav1.Time `json:"started,omitempty"`
	// restored is when Velero had restored the backup.
	// +optional
	Restored *metav1.Time `json:"restored,omitempty"`
	// ready is when everything that was restored had become ready.
	// +optional
	Ready *metav1.Time `json:"ready,omitempty"`
	// concluded is when the verdict was written.
	// +optional
	Concluded *metav1.Time `json:"concluded,omitempty"`
	// keptUntil is until when everything stays for a person to look at.
	// +optional
	KeptUntil *metav1.Time `json:"keptUntil,omitempty"`
	// ended is when nothing was left of the drill.
	// +optional
	Ended *metav1.Time `json:"ended,omitempty"`

	// measured is what the drill has measured.
	// +optional
	Measured *DrillMeasured `json:"measured,omitempty"`

	// checks are the checks of this drill, in the order in which they are made.
	// +optional
	// +listType=atomic
	Checks []DrillCheck `json:"checks,omitempty"`

	// findings are what is wrong, and what a drill cannot verify. At most 50.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	Findings []DrillFinding `json:"findings,omitempty"`
	// moreFindings is how many more there are.
	// +optional
	MoreFindings int64 `json:"moreFindings,omitempty"`
}

// MaxDrillFindings is how many findings a status shows.
const MaxDrillFindings = 50

// DrillMeasured is what a drill has measured.
type DrillMeasured struct {
	// restoreSeconds is how long Velero took to restore the backup, in seconds.
	// +optional
	RestoreSeconds int64 `json:"restoreSeconds,omitempty"`
	// readySeconds is how long the restored workloads took from then to become ready, in seconds.
	// +optional
	ReadySeconds int64 `json:"readySeconds,omitempty"`
	// objects is how many objects were restored.
	// +optional
	Objects int64 `json:"objects,omitempty"`
	// bytes is how much of the data of volumes was restored, in bytes, as far as Velero counts it.
	// +optional
	Bytes int64 `json:"bytes,omitempty"`
}

// DrillResult is what a check came to.
//
// +kubebuilder:validation:Enum=Pending;Passed;Failed;NotVerified
type DrillResult string

// The results of a check.
const (
	DrillPending DrillResult = "Pending"
	DrillPassed  DrillResult = "Passed"
	DrillFailed  DrillResult = "Failed"
	// DrillNotVerified is the result of a finding about something that a drill cannot verify.
	DrillNotVerified DrillResult = "NotVerified"
)

// The names of checks.
const (
	CheckObjects   = "objects"
	CheckWorkloads = "workloadsReady"
	CheckJob       = "job"
)

// DrillCheck is a check of a drill.
type DrillCheck struct {
	// name is the name of the check in spec.checks.
	Name string `json:"name"`
	// result is Pending, Passed, Failed or NotVerified.
	Result DrillResult `json:"result"`
	// ended is when the check had its result.
	// +optional
	Ended *metav1.Time `json:"ended,omitempty"`
}

// DrillFinding is something that a drill has found.
type DrillFinding struct {
	// check is the check that found it.
	Check string `json:"check"`
	// result is Failed, or NotVerified for what a drill cannot verify. It is never Pending or Passed.
	Result DrillResult `json:"result"`
	// message says what is wrong with which object. At most 512 characters.
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message"`
}
