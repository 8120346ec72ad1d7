package v1alpha1

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// KindRestoreDrill is the kind of a RestoreDrill.
const KindRestoreDrill = "RestoreDrill"

// ResourceRestoreDrills is the plural resource name.
const ResourceRestoreDrills = "restoredrills"

const (
	// LabelDrill is on everything that is made for a drill, its Namespace too. Its value is the drill's UID. Nobody but Holdfast may
	// set it on a Namespace.
	LabelDrill = "holdfast.dev/drill"
	// AnnotationDrillNamespace is the namespace of the drill.
	AnnotationDrillNamespace = "holdfast.dev/drill-namespace"
	// AnnotationDrillName is its name.
	AnnotationDrillName = "holdfast.dev/drill-name"
)

func init() {
	Requests = append(Requests, ResourceRestoreDrills)
	SchemeBuilder.Register(known(&RestoreDrill{}, &RestoreDrillList{}))
}

// StatusConditions are status.conditions.
func (d *RestoreDrill) StatusConditions() *[]metav1.Condition { return &d.Status.Conditions }

// JudgedBy is the condition that says how the drill has ended.
func (*RestoreDrill) JudgedBy() string { return ConditionVerified }

// ActionNeeded reports whether somebody has to act on this reason of a Verified that is not True.
func (*RestoreDrill) ActionNeeded(reason string) bool {
	return slices.Contains(VerdictReasons(), reason)
}

// RestoreDrill restores a backup of its namespace into a namespace that nobody uses, checks what came back, and deletes it again.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=restoredrills,shortName=drill,categories=holdfast
// +kubebuilder:printcolumn:name="Backup",type="string",JSONPath=".status.backup"
// +kubebuilder:printcolumn:name="Phase",type="string",JSONPath=".status.phase"
// +kubebuilder:printcolumn:name="Verified",type="string",JSONPath=".status.conditions[?(@.type=='Verified')].status"
// +kubebuilder:printcolumn:name="Reason",type="string",JSONPath=".status.conditions[?(@.type=='Verified')].reason"
// +kubebuilder:printcolumn:name="Drill-Namespace",type="string",priority=1,JSONPath=".status.namespace"
// +kubebuilder:selectablefield:JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type RestoreDrill struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is restored and checked. It cannot be changed: create another drill.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec cannot be changed, create another RestoreDrill"
	Spec RestoreDrillSpec `json:"spec"`
	// status is the last observed state of the drill. Read-only.
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status RestoreDrillStatus `json:"status,omitempty"`
}

// RestoreDrillSpec says which backup is restored, and what is checked.
//
// +kubebuilder:validation:XValidation:rule="has(self.backupName) != has(self.planName)",message="spec must have exactly one of backupName and planName"
type RestoreDrillSpec struct {
	// backupName is the name of a NonAdminBackup of this namespace. At most 253 characters.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	BackupName string `json:"backupName,omitempty"`

	// planName is the name of a BackupPlan of this namespace, whose newest good backup is restored. At most 63 characters.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	PlanName string `json:"planName,omitempty"`

	// checks say what is checked.
	// +optional
	// +kubebuilder:default={}
	Checks DrillChecks `json:"checks,omitempty"`

	// timeout is how long the restore and all checks may take together, once Velero has begun, as a duration in hours, minutes and
	// seconds. Defaults to 30m. Between 1m and 24h, in at most 32 characters.
	// +optional
	// +kubebuilder:default="30m"
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}h)?([0-9]{1,7}m)?([0-9]{1,9}s)?$') && self.size() > 0 && duration(self) >= duration('1m') && duration(self) <= duration('24h')",message="timeout must be a duration in hours, minutes and seconds, for example 30m, between 1m and 24h"
	Timeout string `json:"timeout,omitempty"`

	// keepOnFailure is how long the namespace stays, for a person to look at, after a drill that failed (Verified is False), as a
	// duration in hours, minutes and seconds. Defaults to 0s. At most 24h, in at most 32 characters. The administrator's policy may
	// shorten it.
	// +optional
	// +kubebuilder:default="0s"
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}h)?([0-9]{1,7}m)?([0-9]{1,9}s)?$') && self.size() > 0 && duration(self) <= duration('24h')",message="keepOnFailure must be a duration in hours, minutes and seconds, for example 1h, and at most 24h"
	KeepOnFailure string `json:"keepOnFailure,omitempty"`
}

// DrillChecks are the checks of a drill.
//
// +kubebuilder:validation:XValidation:rule="!has(self.objects) || self.objects || !has(self.workloadsReady) || self.workloadsReady || has(self.job)",message="checks must have at least one that is true"
type DrillChecks struct {
	// objects checks that every object of the backup that a drill restores is there. Defaults to true.
	// +optional
	// +kubebuilder:default=true
	Objects *bool `json:"objects,omitempty"`
	// workloadsReady checks that the restored claims are bound and the restored workloads become ready. Defaults to true.
	// +optional
	// +kubebuilder:default=true
	WorkloadsReady *bool `json:"workloadsReady,omitempty"`
	// job is a check of your own: a Job that runs in the drill's namespace after the other checks. Exit code 0 passes.
	// +optional
	Job *DrillJob `json:"job,omitempty"`
}

// DrillJob is a Job that a drill runs once.
type DrillJob struct {
	// template is the template of the Job's Pod, as in spec.template of a Job. The Pod is not restarted, and no token of a service
	// account is mounted by default. If it fails, the end of what its containers have printed is in status.findings.
	// +required
	// +kubebuilder:pruning:PreserveUnknownFields
	Template runtime.RawExtension `json:"template"`
}

// RestoreDrillList is a list of RestoreDrills.
//
// +kubebuilder:object:root=true
type RestoreDrillList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []RestoreDrill `json:"items"`
}
