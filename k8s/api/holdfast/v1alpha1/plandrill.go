package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PlanDrill says when the newest good backup of a plan is restored into a namespace that nobody uses, and what is checked there.
type PlanDrill struct {
	// schedule is when drills are due, in the plan's timeZone: five fields of cron (minute, hour, day of month, month, day of week),
	// or @hourly, @daily, @weekly or @monthly. At most 128 characters.
	// +required
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^ *([^ =@]+ +){4}[^ =@]+ *$') || self in ['@hourly', '@daily', '@weekly', '@monthly']",message="schedule must have five fields (minute, hour, day of month, month, day of week), or be @hourly, @daily, @weekly or @monthly"
	Schedule string `json:"schedule"`

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

	// keepOnFailure is how long the namespace stays, for a person to look at, after a drill that failed, as a duration in hours,
	// minutes and seconds. Defaults to 0s. At most 24h, in at most 32 characters. The administrator's policy may shorten it.
	// +optional
	// +kubebuilder:default="0s"
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}h)?([0-9]{1,7}m)?([0-9]{1,9}s)?$') && self.size() > 0 && duration(self) <= duration('24h')",message="keepOnFailure must be a duration in hours, minutes and seconds, for example 1h, and at most 24h"
	KeepOnFailure string `json:"keepOnFailure,omitempty"`
}

// Defaults of a drill that the API server sets.
const (
	DefaultDrillTimeout       = "30m"
	DefaultDrillKeepOnFailure = "0s"
)

// PlanDrills is what is known about the drills of a plan.
type PlanDrills struct {
	// since is since when the plan has drills: until then no backup of it need be verified.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
	// handledDue is until when due times of drill.schedule are handled: for each a drill was made, skipped or missed.
	// +optional
	HandledDue *metav1.Time `json:"handledDue,omitempty"`
	// handledSchedule is the schedule, with its time zone, of handledDue.
	// +optional
	HandledSchedule string `json:"handledSchedule,omitempty"`
	// next is when the next drill begins. Empty while the plan is paused or not ready.
	// +optional
	Next *metav1.Time `json:"next,omitempty"`
	// last is the newest drill.
	// +optional
	Last *DrillRun `json:"last,omitempty"`
	// lastSkipped is the newest due time that was skipped.
	// +optional
	LastSkipped *SkippedDrill `json:"lastSkipped,omitempty"`
	// made is the number of drills that were made.
	// +optional
	Made int64 `json:"made,omitempty"`
	// skipped is the number of due times without a drill because the last one was not over, or there was no good backup.
	// +optional
	Skipped int64 `json:"skipped,omitempty"`
	// missed is the number of due times at which no drill was made in time.
	// +optional
	Missed int64 `json:"missed,omitempty"`
}

// DrillRun is a drill of a plan.
type DrillRun struct {
	// name is the name of the RestoreDrill.
	Name string `json:"name"`
	// time is when the drill was due.
	Time metav1.Time `json:"time"`
	// backup is the name of the NonAdminBackup that it restores.
	// +optional
	Backup string `json:"backup,omitempty"`
	// phase is the phase of the RestoreDrill. Deleted: it is gone.
	// +optional
	Phase string `json:"phase,omitempty"`
	// verified is the reason of its condition Verified.
	// +optional
	Verified string `json:"verified,omitempty"`
}

// SkippedDrill is a due time without a drill.
type SkippedDrill struct {
	// time is when the drill was due.
	Time metav1.Time `json:"time"`
	// why is the reason: the last drill was not over, or there was no good backup.
	Why string `json:"why"`
}

// VerifiedRun is a backup of a plan that a drill has verified.
type VerifiedRun struct {
	// name is the name of the NonAdminBackup, which may be gone.
	Name string `json:"name"`
	// time is when Velero completed the backup.
	Time metav1.Time `json:"time"`
	// verified is when a drill verified it last.
	Verified metav1.Time `json:"verified"`
	// restoreSeconds is how long Velero took to restore it, in seconds.
	// +optional
	RestoreSeconds int64 `json:"restoreSeconds,omitempty"`
	// readySeconds is how long the restored workloads took from then to become ready, in seconds.
	// +optional
	ReadySeconds int64 `json:"readySeconds,omitempty"`
}

// Measured reports whether the recovery time is known: a cluster with OADP's own CRDs prunes it, and it may be less than a
// second.
func (v *VerifiedRun) Measured() bool { return v.RestoreSeconds+v.ReadySeconds > 0 }
