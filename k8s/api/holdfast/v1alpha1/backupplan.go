package v1alpha1

import (
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func init() {
	Configuration = append(Configuration, ResourceBackupPlans)
	SchemeBuilder.Register(known(&BackupPlan{}, &BackupPlanList{}))
}

// BackupPlan makes NonAdminBackups of its namespace by a schedule, and deletes the older ones of those that it has made.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=backupplans,shortName=bplan,categories=holdfast
// +kubebuilder:printcolumn:name="Schedule",type="string",JSONPath=".spec.schedule"
// +kubebuilder:printcolumn:name="Paused",type="string",JSONPath=".status.paused"
// +kubebuilder:printcolumn:name="Last-Good",type="date",JSONPath=".status.lastGood.time"
// +kubebuilder:printcolumn:name="Last-Verified",type="date",JSONPath=".status.lastVerified.time"
// +kubebuilder:printcolumn:name="Next-Run",type="string",JSONPath=".status.nextRun"
// +kubebuilder:printcolumn:name="Objective",type="string",JSONPath=".status.conditions[?(@.type=='ObjectiveMet')].reason"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="Reason",type="string",priority=1,JSONPath=".status.conditions[?(@.type=='Ready')].reason"
// +kubebuilder:selectablefield:JSONPath=`.status.paused`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="metadata.name may have 63 characters at most, because it is a label of the plan's backups"
type BackupPlan struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the plan.
	// +required
	Spec BackupPlanSpec `json:"spec"`
	// status is the last observed state of the plan. Read-only.
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status BackupPlanStatus `json:"status,omitempty"`
}

// BackupPlanSpec says when backups are made, of what, and for how long they are kept.
type BackupPlanSpec struct {
	// schedule is when runs are due: five fields of cron (minute, hour, day of month, month, day of week), or @hourly, @daily,
	// @weekly or @monthly. A time that the clocks skip in spring is due as much later; one that they repeat in autumn is due once. A
	// schedule for every hour is due in every hour that passes. At most 128 characters.
	// +required
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^ *([^ =@]+ +){4}[^ =@]+ *$') || self in ['@hourly', '@daily', '@weekly', '@monthly']",message="schedule must have five fields (minute, hour, day of month, month, day of week), or be @hourly, @daily, @weekly or @monthly"
	Schedule string `json:"schedule"`

	// timeZone is the IANA name of the time zone of schedule and keep, for example Europe/Berlin. Defaults to UTC. At most
	// 64 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	TimeZone string `json:"timeZone,omitempty"`

	// jitter is how much later than due a run begins at most, as a duration in hours, minutes and seconds. The delay is always the
	// same for one plan. 0s is none. Defaults to a tenth of the time between two runs, and at most 15m. At most 24h, in at most 32
	// characters.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}h)?([0-9]{1,7}m)?([0-9]{1,9}s)?$') && self.size() > 0 && duration(self) <= duration('24h')",message="jitter must be a duration in hours, minutes and seconds, for example 10m, and at most 24h"
	Jitter string `json:"jitter,omitempty"`

	// paused suspends the schedule if true. Runs that are due meanwhile are not made up. An operator can pause the plan's Schedule
	// in Temporal, too. Defaults to false.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// startingDeadline is how late a run may begin, as a duration in hours, minutes and seconds. Of the runs that were missed while
	// Temporal or the cluster was away, only the newest is made up, and only within this time. Defaults to 1h. At least 10s, in at
	// most 32 characters.
	// +optional
	// +kubebuilder:default="1h"
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}h)?([0-9]{1,7}m)?([0-9]{1,9}s)?$') && self.size() > 0 && duration(self) >= duration('10s')",message="startingDeadline must be a duration in hours, minutes and seconds, for example 1h, and at least 10s"
	StartingDeadline string `json:"startingDeadline,omitempty"`

	// concurrencyPolicy is what happens to a run that is due while the plan's last backup is not finished: Skip or Allow. Defaults
	// to Skip.
	// +optional
	// +kubebuilder:default=Skip
	ConcurrencyPolicy ConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`

	// template describes the NonAdminBackups that the plan makes.
	// +required
	Template BackupTemplate `json:"template"`

	// keep is how many of the plan's backups are kept. Without it the plan deletes none; they expire as backupSpec.ttl says.
	// +optional
	Keep *Keep `json:"keep,omitempty"`

	// drill has the newest good backup restored and checked, by a schedule of its own.
	// +optional
	Drill *PlanDrill `json:"drill,omitempty"`

	// objective is how recent the newest good backup must be, or the newest verified one, or both.
	// +optional
	Objective *Objective `json:"objective,omitempty"`
}

// Defaults that the API server sets.
const (
	DefaultStartingDeadline = "1h"
	DefaultMinGood          = 1
	DefaultKeepFailed       = 3
)

// ConcurrencyPolicy is what happens to a run that is due while the plan's last backup is not finished.
//
// +kubebuilder:validation:Enum=Skip;Allow
type ConcurrencyPolicy string

// The concurrency policies.
const (
	// ConcurrencySkip skips the run, and counts it.
	ConcurrencySkip ConcurrencyPolicy = "Skip"
	// ConcurrencyAllow makes the run.
	ConcurrencyAllow ConcurrencyPolicy = "Allow"
)

// BackupTemplate describes a NonAdminBackup.
type BackupTemplate struct {
	// metadata is added to the NonAdminBackups.
	// +optional
	Metadata TemplateMetadata `json:"metadata,omitempty"`
	// spec is the spec of the NonAdminBackups.
	// +required
	Spec BackupTemplateSpec `json:"spec"`
}

// TemplateMetadata is metadata that is added to the objects that are made.
type TemplateMetadata struct {
	// labels are added to the objects. Keys of holdfast.dev and openshift.io are not allowed. At most 32.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.matches('^([a-z0-9.-]+[.])?(holdfast[.]dev|openshift[.]io)/'))",message="labels of holdfast.dev and openshift.io are Holdfast's own"
	Labels map[string]string `json:"labels,omitempty"`
	// annotations are added to the objects. Keys of holdfast.dev and openshift.io are not allowed. At most 32.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.matches('^([a-z0-9.-]+[.])?(holdfast[.]dev|openshift[.]io)/'))",message="annotations of holdfast.dev and openshift.io are Holdfast's own"
	Annotations map[string]string `json:"annotations,omitempty"`
}

// BackupTemplateSpec is the spec of the NonAdminBackups that a plan makes.
type BackupTemplateSpec struct {
	// backupSpec is the specification of the Velero Backups. Its ttl is raised to what keep needs.
	// +required
	BackupSpec *velerov1.BackupSpec `json:"backupSpec"`

	// Unreadable says why backupSpec could not be decoded and is nil, although the API server holds one. It is never written.
	Unreadable string `json:"-"`
}

// Keep is how many of a plan's backups are kept. A rule over a span of time keeps the newest good backup of each of the last
// spans that have one, by the actual begin of the backups in the plan's time zone. Good is a backup that Velero has completed
// without failures. Backups that no rule keeps are deleted with their data.
type Keep struct {
	// last is how many of the newest good backups are kept. Defaults to 0. At most 1000.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Last int32 `json:"last,omitempty"`
	// hourly is how many hours have a backup kept. Defaults to 0. At most 1000.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Hourly int32 `json:"hourly,omitempty"`
	// daily is how many days have a backup kept. Defaults to 0. At most 1000.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Daily int32 `json:"daily,omitempty"`
	// weekly is how many ISO weeks have a backup kept. Defaults to 0. At most 1000.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Weekly int32 `json:"weekly,omitempty"`
	// monthly is how many months have a backup kept. Defaults to 0. At most 240.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=240
	Monthly int32 `json:"monthly,omitempty"`
	// yearly is how many years have a backup kept. Defaults to 0. At most 30.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=30
	Yearly int32 `json:"yearly,omitempty"`
	// minGood is how many of the newest good backups stay whatever else is said, and of those in status.content.usual, which do not
	// hold far less than those before them; Velero's expiration of these is moved on. Defaults to 1. Between 1 and 100.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	MinGood *int32 `json:"minGood,omitempty"`
	// failed is how many of the newest backups that are not good are kept. Defaults to 3. At most 100.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Failed *int32 `json:"failed,omitempty"`
	// dryRun only shows in status.retention what would be deleted, if true. Defaults to false.
	// +optional
	DryRun bool `json:"dryRun,omitempty"`
}

// Objective is how recent the newest good backup of a plan, and the newest verified one, must be.
//
// +kubebuilder:validation:XValidation:rule="has(self.recoveryPoint) || has(self.verified)",message="objective must have recoveryPoint or verified, or both"
type Objective struct {
	// recoveryPoint is the age at which the newest good backup is too old, measured from its begin, as a duration in hours, minutes
	// and seconds, for example 26h. At least 1m, in at most 32 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}h)?([0-9]{1,7}m)?([0-9]{1,9}s)?$') && self.size() > 0 && duration(self) >= duration('1m')",message="recoveryPoint must be a duration in hours, minutes and seconds, for example 26h, and at least 1m"
	RecoveryPoint string `json:"recoveryPoint,omitempty"`

	// verified is the age at which the newest verified backup is too old, measured from its completion, as a duration in hours,
	// minutes and seconds, for example 168h. It should be longer than the time between two drills. At least 1m, in at most 32
	// characters.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}h)?([0-9]{1,7}m)?([0-9]{1,9}s)?$') && self.size() > 0 && duration(self) >= duration('1m')",message="verified must be a duration in hours, minutes and seconds, for example 168h, and at least 1m"
	Verified string `json:"verified,omitempty"`
}

// BackupPlanList is a list of BackupPlans.
//
// +kubebuilder:object:root=true
type BackupPlanList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []BackupPlan `json:"items"`
}
