package v1alpha1

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
)

// The kind, and its resource.
const (
	KindFoundationDBDrill      = "FoundationDBDrill"
	ResourceFoundationDBDrills = "foundationdbdrills"
)

const (
	// LabelDrillTarget on a FoundationDBCluster, with the value "true", lets drills restore into it while it is empty, and clear it.
	LabelDrillTarget = "holdfast.dev/drill-target"
	// LabelDrillTargetValue is the only value of LabelDrillTarget that counts.
	LabelDrillTargetValue = "true"
	// FinalizerDrillTarget keeps a FoundationDBDrill until its target is cleared.
	FinalizerDrillTarget = "fdb.holdfast.dev/clear-drill-target"
)

func init() {
	Requests = append(Requests, ResourceFoundationDBDrills)
	SchemeBuilder.Register(known(&FoundationDBDrill{}, &FoundationDBDrillList{}))
}

// StatusConditions are status.conditions.
func (d *FoundationDBDrill) StatusConditions() *[]metav1.Condition { return &d.Status.Conditions }

// JudgedBy is the condition that says how the drill has ended.
func (*FoundationDBDrill) JudgedBy() string { return holdfastv1alpha1.ConditionVerified }

// ActionNeeded reports whether somebody has to act on this reason of a Verified that is not True.
func (*FoundationDBDrill) ActionNeeded(reason string) bool {
	return slices.Contains(holdfastv1alpha1.VerdictReasons(), reason)
}

// FoundationDBDrill restores a FoundationDBBackup into an empty FoundationDB cluster that its owner has labelled for it, checks
// what came back, and clears that cluster again.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=foundationdbdrills,shortName=fdbdrill,categories=holdfast
// +kubebuilder:printcolumn:name="Backup",type="string",JSONPath=".spec.backupName"
// +kubebuilder:printcolumn:name="Target",type="string",JSONPath=".spec.targetClusterName"
// +kubebuilder:printcolumn:name="Phase",type="string",JSONPath=".status.phase"
// +kubebuilder:printcolumn:name="Verified",type="string",JSONPath=".status.conditions[?(@.type=='Verified')].status"
// +kubebuilder:printcolumn:name="Reason",type="string",JSONPath=".status.conditions[?(@.type=='Verified')].reason"
// +kubebuilder:selectablefield:JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type FoundationDBDrill struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is restored, where, and what is compared. It cannot be changed: create another drill.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec cannot be changed, create another FoundationDBDrill"
	Spec FoundationDBDrillSpec `json:"spec"`
	// status is the last observed state of the drill. Read-only.
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status FoundationDBDrillStatus `json:"status,omitempty"`
}

// FoundationDBDrillSpec says what is restored, where, and what is compared.
type FoundationDBDrillSpec struct {
	// backupName is the name of a FoundationDBBackup of this namespace, whose newest restorable backup is restored. At most 63
	// characters.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	BackupName string `json:"backupName"`

	// targetClusterName is the name of the FoundationDBCluster, in this namespace, that is restored into. It must have the label
	// holdfast.dev/drill-target: "true", be empty, and not be the cluster that was backed up. Everything in it is cleared at the
	// end. At most 253 characters.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	TargetClusterName string `json:"targetClusterName"`

	// version is the version of the database to restore. Defaults to the present one, as soon as it can be restored; of a backup
	// that does not run, to the latest that can. At least 1.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Version int64 `json:"version,omitempty"`

	// ranges are the ranges of keys whose digests are compared. Defaults to what the backup holds, as one range. At most 16.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Ranges []DrillKeyRange `json:"ranges,omitempty"`

	// timeout is how long the restore and all checks may take together, as a duration in hours, minutes and seconds. Defaults to 1h.
	// Between 1m and 24h, in at most 32 characters.
	// +optional
	// +kubebuilder:default="1h"
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}h)?([0-9]{1,7}m)?([0-9]{1,9}s)?$') && self.size() > 0 && duration(self) >= duration('1m') && duration(self) <= duration('24h')",message="timeout must be a duration in hours, minutes and seconds, for example 30m, between 1m and 24h"
	Timeout string `json:"timeout,omitempty"`
}

// DrillKeyRange is a named range of keys, written as FoundationDB prints them: printable ASCII characters as they are, other
// bytes as \xNN, a backslash as \\.
//
// +kubebuilder:validation:XValidation:rule="self.start.contains('\\\\') || self.end.contains('\\\\') || self.start < self.end",message="start must come before end"
type DrillKeyRange struct {
	// name is the name of the range in the status. At most 63 characters.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// start is the first key of the range, inclusive. At most 1024 characters.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^([!-\\\\[\\\\]-~]|\\\\\\\\x[0-9a-fA-F]{2}|\\\\\\\\\\\\\\\\)+$')",message="start must be a printable FoundationDB key: spaces and other bytes as \\xNN, a backslash twice"
	Start string `json:"start"`

	// end is the end of the range, exclusive. At most 1024 characters.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^([!-\\\\[\\\\]-~]|\\\\\\\\x[0-9a-fA-F]{2}|\\\\\\\\\\\\\\\\)+$')",message="end must be a printable FoundationDB key: spaces and other bytes as \\xNN, a backslash twice"
	End string `json:"end"`
}

// FoundationDBDrillPhase is how far a drill is.
//
// +kubebuilder:validation:Enum=New;Waiting;Restoring;Checking;CleaningUp;Ended
type FoundationDBDrillPhase string

// The phases of a drill, in their order. A drill that is refused is Ended.
const (
	FDBDrillNew FoundationDBDrillPhase = "New"
	// FDBDrillWaiting: the backup does not hold the version yet.
	FDBDrillWaiting    FoundationDBDrillPhase = "Waiting"
	FDBDrillRestoring  FoundationDBDrillPhase = "Restoring"
	FDBDrillChecking   FoundationDBDrillPhase = "Checking"
	FDBDrillCleaningUp FoundationDBDrillPhase = "CleaningUp"
	FDBDrillEnded      FoundationDBDrillPhase = "Ended"
)

// DrillByDigests is the only method of a FoundationDBDrill.
const DrillByDigests = "Digests"

// The names of checks of a FoundationDBDrill, in its findings.
const (
	// CheckRestore is the restore itself.
	CheckRestore = "restore"
	// CheckRanges compares ranges with their records.
	CheckRanges = "ranges"
	// CheckCount counts all keys of the target.
	CheckCount = "count"
	// CheckCleanUp clears the target.
	CheckCleanUp = "cleanUp"
)

// FoundationDBDrillStatus is what is known about a drill.
type FoundationDBDrillStatus struct {
	// observedGeneration is the generation of the spec that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// phase is how far the drill is: New, Waiting, Restoring, Checking, CleaningUp or Ended.
	// +optional
	Phase FoundationDBDrillPhase `json:"phase,omitempty"`

	// conditions are the latest observations of the drill: Verified.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// url is the URL of the backup that is restored, without a secret.
	// +optional
	URL string `json:"url,omitempty"`
	// version is the version of the database that is restored.
	// +optional
	Version int64 `json:"version,omitempty"`
	// target is the database that is restored into, as description:id of its cluster file.
	// +optional
	Target string `json:"target,omitempty"`
	// restore is the name of the FoundationDBRestore. It is deleted when the drill ends.
	// +optional
	Restore string `json:"restore,omitempty"`
	// tag is the name of the restore within the target.
	// +optional
	Tag string `json:"tag,omitempty"`

	// started is when the drill began.
	// +optional
	Started *metav1.Time `json:"started,omitempty"`
	// begun is when the FoundationDBRestore was made.
	// +optional
	Begun *metav1.Time `json:"begun,omitempty"`
	// restored is when it had completed.
	// +optional
	Restored *metav1.Time `json:"restored,omitempty"`
	// concluded is when the drill had its verdict.
	// +optional
	Concluded *metav1.Time `json:"concluded,omitempty"`
	// uncleared is why several attempts to clear the target have failed; Holdfast keeps trying.
	// +optional
	Uncleared string `json:"uncleared,omitempty"`
	// cleared is when nothing of the drill was left in the target.
	// +optional
	Cleared *metav1.Time `json:"cleared,omitempty"`
	// ended is when nothing more was to be done.
	// +optional
	Ended *metav1.Time `json:"ended,omitempty"`

	// method is how the content is compared: Digests, of ranges that a client reads in source and target.
	// +optional
	Method string `json:"method,omitempty"`
	// notCovered is what the method does not see.
	// +optional
	NotCovered string `json:"notCovered,omitempty"`
	// records are what the source held in the ranges at version. At most 100.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Records []DrillRangeRecord `json:"records,omitempty"`

	// measured is what the drill has measured.
	// +optional
	Measured *FoundationDBDrillMeasured `json:"measured,omitempty"`

	// findings are what is wrong, and what a drill cannot verify. At most 50.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	Findings []holdfastv1alpha1.DrillFinding `json:"findings,omitempty"`
	// moreFindings is how many more there are.
	// +optional
	MoreFindings int64 `json:"moreFindings,omitempty"`
}

// DrillRangeRecord is what a database held in a range of keys at a version.
type DrillRangeRecord struct {
	// name is the name of the range.
	Name string `json:"name"`
	// start is the first key, as FoundationDB prints it; empty for the first key of all.
	// +optional
	Start string `json:"start,omitempty"`
	// end is the end of the range, exclusive.
	// +optional
	End string `json:"end,omitempty"`
	// keys is the number of keys.
	// +optional
	Keys int64 `json:"keys,omitempty"`
	// bytes is the length of all keys and values, in bytes.
	// +optional
	Bytes int64 `json:"bytes,omitempty"`
	// digest is the sum modulo 2^256 of the SHA-256 of each key and value, in hexadecimal digits, as FoundationDB's audit_storage
	// range_digest has it; empty if the range could not be read at the version.
	// +optional
	Digest string `json:"digest,omitempty"`
}

// FoundationDBDrillMeasured is what a drill has measured.
type FoundationDBDrillMeasured struct {
	// restoreSeconds is how long the restore took, from its FoundationDBRestore to the end of its checks, in seconds.
	// +optional
	RestoreSeconds int64 `json:"restoreSeconds,omitempty"`
	// keys is how many keys were in the target after the restore.
	// +optional
	Keys int64 `json:"keys,omitempty"`
	// bytes is the length of all these keys and their values, in bytes.
	// +optional
	Bytes int64 `json:"bytes,omitempty"`
}

// FoundationDBDrillList is a list of FoundationDBDrills.
//
// +kubebuilder:object:root=true
type FoundationDBDrillList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []FoundationDBDrill `json:"items"`
}
