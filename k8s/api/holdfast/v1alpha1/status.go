package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Conditions of a BackupPlan. Operators, monitoring rules and scripts may depend on them, and on their reasons.
const (
	// ConditionReady is True if the spec is carried out.
	ConditionReady = "Ready"
	// ConditionObjectiveMet is True while the newest good backup, and the newest verified one, are recent enough, as far as the
	// objective names them. It is absent without an objective.
	ConditionObjectiveMet = "ObjectiveMet"
	// ConditionContentUsual is True while the newest good backup holds what the plan's backups usually hold. It is absent without a
	// good backup.
	ConditionContentUsual = "ContentUsual"
)

// Reasons of Ready.
const (
	// ReasonScheduled: the plan has its Schedule. True.
	ReasonScheduled = "Scheduled"
	// ReasonKeepExceedsTTL: the plan has its Schedule, but the administrator enforces a ttl that is too short for keep. True.
	ReasonKeepExceedsTTL = "KeepExceedsTTL"
	// ReasonUnscheduled: Temporal has not made the Schedule of the plan yet. Unknown.
	ReasonUnscheduled = "Unscheduled"
	// ReasonInvalid: the spec cannot be carried out. False.
	ReasonInvalid = "InvalidSpec"
	// ReasonForbidden: the administrator's policy does not allow the plan. False.
	ReasonForbidden = "ForbiddenByPolicy"
	// ReasonDrillInvalid: spec.drill cannot be carried out; runs are made. True.
	ReasonDrillInvalid = "InvalidDrill"
	// ReasonDrillForbidden: the administrator's policy does not allow the drills of the plan; runs are made. True.
	ReasonDrillForbidden = "DrillForbiddenByPolicy"
)

// Reasons of ObjectiveMet.
const (
	// ReasonMet: True.
	ReasonMet = "Met"
	// ReasonStale: the newest good backup is too old. False.
	ReasonStale = "Stale"
	// ReasonNeverSucceeded: there is no good backup. False.
	ReasonNeverSucceeded = "NeverSucceeded"
	// ReasonVerificationStale: the newest verified backup is too old. False.
	ReasonVerificationStale = "VerificationStale"
	// ReasonNeverVerified: no drill has verified a backup. False.
	ReasonNeverVerified = "NeverVerified"
	// ReasonUnknown: the first backup, or its drill, is not due, or not finished, yet. Unknown.
	ReasonUnknown = "Unknown"
	// ReasonPaused: the plan is paused, and its newest good backup, or its newest verified one, too old or absent. Unknown.
	ReasonPaused = "Paused"
)

// Reasons of ContentUsual. It is Unknown, with ReasonUnknown, if Velero has not counted what the newest good backup holds.
const (
	// ReasonUsual: it holds about what the usual ones do. True.
	ReasonUsual = "Usual"
	// ReasonFarLess: it holds less than half of the items, or of the volumes, that each of the usual ones holds. False.
	ReasonFarLess = "FarLess"
	// ReasonEmpty: it holds nothing but what every namespace has. False.
	ReasonEmpty = "Empty"
)

// StatusConditions are status.conditions.
func (p *BackupPlan) StatusConditions() *[]metav1.Condition { return &p.Status.Conditions }

// ActionNeeded reports whether somebody has to act on this reason of a Ready that is False.
func (*BackupPlan) ActionNeeded(string) bool { return true }

// PausedBy says who has paused a plan.
//
// +kubebuilder:validation:Enum=Spec;Operator;SpecAndOperator
type PausedBy string

// Who pauses a plan.
const (
	// PausedBySpec: spec.paused.
	PausedBySpec PausedBy = "Spec"
	// PausedByOperator: an operator has paused the plan's Schedule in Temporal.
	PausedByOperator PausedBy = "Operator"
	// PausedByBoth: spec.paused, and an operator.
	PausedByBoth PausedBy = "SpecAndOperator"
)

// BackupPlanStatus is what is known about a plan.
type BackupPlanStatus struct {
	// uid is the UID of the plan that the status is of. A restore may bring the status of another plan: this one then continues it.
	// +optional
	UID types.UID `json:"uid,omitempty"`

	// continues are the UIDs of plans whose backups this one takes up when they come back from a bucket, because it was restored
	// with their status, newest last. At most 5.
	// +optional
	// +listType=atomic
	Continues []types.UID `json:"continues,omitempty"`

	// held are the names of the plan's backups with label holdfast.dev/hold. At most 100.
	// +optional
	// +listType=atomic
	Held []string `json:"held,omitempty"`

	// observedGeneration is the generation of the spec that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are the latest observations of the plan: Ready, ObjectiveMet and ContentUsual.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// paused says who has paused the plan: Spec, Operator or SpecAndOperator. Empty if it is not paused.
	// +optional
	Paused PausedBy `json:"paused,omitempty"`

	// nextRun is when the next run begins. Empty while the plan is paused or not ready.
	// +optional
	NextRun *metav1.Time `json:"nextRun,omitempty"`

	// handledDue is until when due times are handled: for each a run was made, skipped or missed.
	// +optional
	HandledDue *metav1.Time `json:"handledDue,omitempty"`

	// handledSchedule is the schedule, with its time zone, of handledDue.
	// +optional
	HandledSchedule string `json:"handledSchedule,omitempty"`

	// handledRunNow is the last value of annotation holdfast.dev/run-now for which a run was made, of which 128 bytes count.
	// +optional
	HandledRunNow string `json:"handledRunNow,omitempty"`

	// lastRun is the newest run.
	// +optional
	LastRun *Run `json:"lastRun,omitempty"`

	// lastGood is the newest good backup.
	// +optional
	LastGood *GoodRun `json:"lastGood,omitempty"`

	// lastVerified is the newest backup that a drill has verified. It stays when the backup is gone.
	// +optional
	LastVerified *VerifiedRun `json:"lastVerified,omitempty"`

	// drills are the drills of the plan. Empty without spec.drill.
	// +optional
	Drills *PlanDrills `json:"drills,omitempty"`

	// content is what the good backups hold.
	// +optional
	Content *Content `json:"content,omitempty"`

	// recent are the newest runs, newest first: five, and those that are not finished.
	// +optional
	// +listType=atomic
	Recent []Run `json:"recent,omitempty"`

	// counts are numbers of runs.
	// +optional
	Counts Counts `json:"counts,omitempty"`

	// days are what became of the runs of the last 31 days that had any, newest first.
	// +optional
	// +listType=atomic
	Days []Day `json:"days,omitempty"`

	// retention is what keep comes to.
	// +optional
	Retention *Retention `json:"retention,omitempty"`
}

// Run is a run of a plan.
type Run struct {
	// name is the name of the NonAdminBackup.
	Name string `json:"name"`
	// time is when the run was due.
	Time metav1.Time `json:"time"`
	// phase is the Velero Backup's phase, or, without one, the phase of the NonAdminBackup. QuotaExceeded: a quota holds it back.
	// Deleted: it is gone.
	// +optional
	Phase string `json:"phase,omitempty"`
}

// PhaseDeleted is the phase of a run whose NonAdminBackup is gone.
const PhaseDeleted = "Deleted"

// GoodRun is a good backup of a plan.
type GoodRun struct {
	// name is the name of the NonAdminBackup.
	Name string `json:"name"`
	// time is when Velero began the backup.
	Time metav1.Time `json:"time"`
	// expires is when Velero deletes the backup.
	// +optional
	Expires *metav1.Time `json:"expires,omitempty"`
}

// Content is what the good backups of a plan hold, as Velero has counted it.
type Content struct {
	// usual are the newest good backups that hold what is usual, newest first, at most five. The next ones are compared with these;
	// they may be deleted by now.
	// +optional
	// +listType=atomic
	Usual []RunContent `json:"usual,omitempty"`
	// newest is the newest good backup.
	// +optional
	Newest *RunContent `json:"newest,omitempty"`
	// less is how many good backups in a row, up to the newest, hold nothing, or how many hold far less than the usual ones.
	// +optional
	Less int64 `json:"less,omitempty"`
	// lessSince is when Velero began the first of these.
	// +optional
	LessSince *metav1.Time `json:"lessSince,omitempty"`
}

// RunContent is what a good backup of a plan holds.
type RunContent struct {
	// name is the name of the NonAdminBackup.
	Name string `json:"name"`
	// time is when Velero began the backup.
	Time metav1.Time `json:"time"`
	// items is the number of Kubernetes objects in the backup. Absent if Velero has not counted them.
	// +optional
	Items *int64 `json:"items,omitempty"`
	// volumes is the number of volumes whose data are in the backup.
	// +optional
	Volumes int64 `json:"volumes,omitempty"`
	// empty is true if the backup has no volumes, and no items but those that every namespace has.
	// +optional
	Empty bool `json:"empty,omitempty"`
}

// Counts are numbers of runs since the plan was created.
type Counts struct {
	// good is the number of runs that completed without failures.
	// +optional
	Good int64 `json:"good,omitempty"`
	// failed is the number of runs that ended in any other way.
	// +optional
	Failed int64 `json:"failed,omitempty"`
	// missed is the number of due times at which no run was made in time.
	// +optional
	Missed int64 `json:"missed,omitempty"`
	// skipped is the number of runs that concurrencyPolicy skipped.
	// +optional
	Skipped int64 `json:"skipped,omitempty"`
	// stored is the number of the plan's backups that exist now.
	// +optional
	Stored int64 `json:"stored,omitempty"`
}

// Day is what became of the runs that were due on one day of UTC.
type Day struct {
	// date is the day, as 2006-01-02.
	Date string `json:"date"`
	// good is the number of runs that completed without failures.
	// +optional
	Good int64 `json:"good,omitempty"`
	// failed is the number of runs that ended in any other way.
	// +optional
	Failed int64 `json:"failed,omitempty"`
	// missed is the number of due times at which no run was made in time.
	// +optional
	Missed int64 `json:"missed,omitempty"`
	// skipped is the number of runs that concurrencyPolicy skipped.
	// +optional
	Skipped int64 `json:"skipped,omitempty"`
}

// Retention is what becomes of the backups of a plan. Each list has at most 20 entries.
type Retention struct {
	// lastPass is when the backups were last judged with another result.
	// +optional
	LastPass *metav1.Time `json:"lastPass,omitempty"`
	// oldestPending is the backup that is to be deleted first, now or once nothing blocks its deletion.
	// +optional
	OldestPending string `json:"oldestPending,omitempty"`
	// pendingSince is since when that backup has been the first.
	// +optional
	PendingSince *metav1.Time `json:"pendingSince,omitempty"`
	// kept are the backups that stay, newest first, with the rules that keep them.
	// +optional
	// +listType=atomic
	Kept []Kept `json:"kept,omitempty"`
	// due are the backups that are to be deleted, oldest first. They are deleted one after the other.
	// +optional
	// +listType=atomic
	Due []BackupReason `json:"due,omitempty"`
	// blocked are the backups that would be deleted but for something, oldest first.
	// +optional
	// +listType=atomic
	Blocked []BackupReason `json:"blocked,omitempty"`
	// moreKept is how many more stay.
	// +optional
	MoreKept int64 `json:"moreKept,omitempty"`
	// moreDue is how many more are to be deleted.
	// +optional
	MoreDue int64 `json:"moreDue,omitempty"`
	// moreBlocked is how many more are blocked.
	// +optional
	MoreBlocked int64 `json:"moreBlocked,omitempty"`
}

// Kept is a backup that stays.
type Kept struct {
	// name is the name of the NonAdminBackup.
	Name string `json:"name"`
	// by are the rules that keep it, separated by commas.
	By string `json:"by"`
}

// BackupReason is a backup and the reason for what becomes of it.
type BackupReason struct {
	// name is the name of the NonAdminBackup.
	Name string `json:"name"`
	// why is the reason: why it goes, or what blocks its deletion.
	Why string `json:"why"`
}
