package contract

import (
	"fmt"
	"hash/fnv"
	"strings"
	"time"
)

// KindPlan serves one BackupPlan as long as it exists. Its Schedule has the same ID. Input: PlanInput, no result.
var KindPlan = Kind{Workflow: "BackupPlan", ID: "plan", Kubernetes: "BackupPlan", Summary: "Plan"}

// KindPlanStart is one start by the Schedule of a plan: it signals the plan's workflow, which makes the run. Input:
// PlanStartInput, no result.
var KindPlanStart = Kind{Workflow: "BackupPlanStart", ID: "plan-start", Summary: "Start of plan", Pinned: true}

type planActivity = Activity[PlanStep, PlanView]

// Activities of the BackupPlan workflow. Each takes a PlanStep, returns the PlanView after its effect, and may be repeated at any
// time.
var (
	RefreshPlan       = planActivity{"refresh-plan", "Read the plan and its backups, keep its Schedule, write its status"}
	RunPlan           = planActivity{"run-plan", "Make the NonAdminBackup that is due"}
	RecordPlanBackups = planActivity{"record-plan-backups", "Record on Velero Backups which plan has made them, and refresh"}
	DeletePlanBackup  = planActivity{"delete-plan-backup", "Delete a backup that no rule of keep names"}
	ExtendPlanBackup  = planActivity{"extend-plan-backup", "Postpone the expiration of a backup that only minGood keeps"}
	MakePlanDrill     = planActivity{"make-plan-drill", "Make the RestoreDrill that is due"}
	DeletePlanDrill   = planActivity{"delete-plan-drill", "Delete a RestoreDrill that is over and not among the newest"}
)

// SignalPlan signals the workflow of a plan that its Schedule has started a run.
var SignalPlan = Activity[PlanSignal, None]{"signal-plan", "Signal the plan's workflow"}

// PlanInput starts, and continues, the workflow of one BackupPlan.
type PlanInput struct {
	ObjectInput
	// Made are NonAdminBackups that the plan has made and that are not recorded on their Velero Backups yet.
	Made []PlanBackup `json:"made,omitempty"`
	// RunNow: somebody has started a run by hand that is not made yet.
	RunNow bool `json:"runNow,omitempty"`
	// LastByHand is when the last run by hand was made, in Unix seconds.
	LastByHand int64 `json:"lastByHand,omitempty"`
	// Schedule is the plan's Schedule as it was last read; nil if it is to be read.
	Schedule *PlanSchedule `json:"schedule,omitempty"`
}

// PlanChanged is the payload of SignalChanged for BackupPlans.
type PlanChanged struct {
	Changed
	// RunNow: somebody has started a run of the plan by hand.
	RunNow bool `json:"runNow,omitempty"`
	// Schedule: the Schedule of the plan is not as the plan knows it.
	Schedule bool `json:"schedule,omitempty"`
}

// PlanSchedule is what a plan's workflow knows of its Schedule. Reading one costs Temporal a workflow task.
type PlanSchedule struct {
	// Generation is that of the plan whose times it has, and Refused that the plan made no runs then.
	Generation int64 `json:"generation"`
	Refused    bool  `json:"refused,omitempty"`
	// Last is the last of its times, in Unix seconds.
	Last int64 `json:"last,omitempty"`
	// PausedByOperator: a person has paused it.
	PausedByOperator bool `json:"pausedByOperator,omitempty"`
	// Doubted: it has not signalled a run in time. Somebody may have paused or deleted it.
	Doubted bool `json:"doubted,omitempty"`
}

// MaxPlanMade bounds PlanInput.Made. Older ones are no longer known as the plan's, and so are kept.
const MaxPlanMade = 100

// PlanBackup is a NonAdminBackup that a plan has made.
type PlanBackup struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
}

// PlanStep is the input of every activity that serves a BackupPlan.
type PlanStep struct {
	Cluster string    `json:"cluster"`
	Ref     ObjectRef `json:"ref"`
	// Made is PlanInput.Made.
	Made []PlanBackup `json:"made,omitempty"`
	// Due is the time of the run by hand that RunPlan makes, in Unix seconds; zero has it make the run that the schedule says.
	Due int64 `json:"due,omitempty"`
	// Schedule is PlanInput.Schedule.
	Schedule *PlanSchedule `json:"schedule,omitempty"`
	// Backup is what DeletePlanBackup and ExtendPlanBackup act on, by name.
	Backup string `json:"backup,omitempty"`
	// Drill is what DeletePlanDrill deletes, by name.
	Drill string `json:"drill,omitempty"`
}

// PlanView is what decides the next step for a BackupPlan.
type PlanView struct {
	// Found is false when no object of that UID exists; every other field is then zero, and its Schedule is gone.
	Found bool `json:"found"`
	// Ready: the spec can be carried out. Why says why not.
	Ready bool   `json:"ready,omitempty"`
	Why   string `json:"why,omitempty"`
	// Paused says who has paused it.
	Paused string `json:"paused,omitempty"`
	// Due is the due time of the run that is to be made now, in Unix seconds.
	Due int64 `json:"due,omitempty"`
	// RunNow: the tenant has requested a run that was not made yet.
	RunNow bool `json:"runNow,omitempty"`
	// Delete is the backup that is to be deleted now.
	Delete string `json:"delete,omitempty"`
	// Extend is the backup whose expiration is to be moved on now.
	Extend string `json:"extend,omitempty"`
	// DrillDue is the due time of the drill that is to be made now, in Unix seconds.
	DrillDue int64 `json:"drillDue,omitempty"`
	// DeleteDrill is the drill that is to be deleted now.
	DeleteDrill string `json:"deleteDrill,omitempty"`
	// Schedule is the plan's Schedule as it is now known.
	Schedule *PlanSchedule `json:"schedule,omitempty"`
	// MadeNow is the NonAdminBackup that RunPlan has made.
	MadeNow *PlanBackup `json:"madeNow,omitempty"`
	// Recorded are those that need no more record: they have one, or are gone.
	Recorded []string `json:"recorded,omitempty"`
	// WakeIn is how long nothing is due if nothing happens.
	WakeIn time.Duration `json:"wakeIn,omitempty"`
	// NextRun, LastGood and LastVerified are for people, in Unix seconds.
	NextRun      int64 `json:"nextRun,omitempty"`
	LastGood     int64 `json:"lastGood,omitempty"`
	LastVerified int64 `json:"lastVerified,omitempty"`
	// Objective is the reason of the condition ObjectiveMet.
	Objective string `json:"objective,omitempty"`
	// Stored is how many backups it has, Deleting how many of those are being deleted.
	Stored   int `json:"stored,omitempty"`
	Deleting int `json:"deleting,omitempty"`
}

// PlanStartInput is the input of what the Schedule of a plan starts.
type PlanStartInput struct {
	Cluster string    `json:"cluster"`
	Ref     ObjectRef `json:"ref"`
	// Instants are when the Schedule is to start it, in Unix seconds, as of its last update. Any other start is by hand.
	Instants []int64 `json:"instants,omitempty"`
}

// PlanSignal is the input of SignalPlan.
type PlanSignal struct {
	Cluster string    `json:"cluster"`
	Ref     ObjectRef `json:"ref"`
	ByHand  bool      `json:"byHand,omitempty"`
}

const (
	// maxPlanRunName is how long the name of a run may be: it is a label of its Velero Backup.
	maxPlanRunName = 63
	planRunLayout  = "20060102150405"
)

// PlanRunName is the name of the NonAdminBackup of a run, and of the RestoreDrill that is due then: `<plan>-<due time in UTC>`.
// The name of a plan that is too long for that is cut, and a hash of it added.
func PlanRunName(plan string, due time.Time) string {
	stamp := "-" + due.UTC().Format(planRunLayout)
	if len(plan)+len(stamp) > maxPlanRunName {
		hash := fnv.New32a()
		hash.Write([]byte(plan))
		suffix := fmt.Sprintf("-%08x", hash.Sum32())
		plan = strings.TrimRight(plan[:maxPlanRunName-len(stamp)-len(suffix)], "-.") + suffix
	}
	return plan + stamp
}

// KindDefaultPlans gives namespaces, once, the plans that the administrator's policy names for them. A Schedule starts it, and
// the watcher when a namespace or the policy has changed. Input: ScheduledInput, result: DefaultPlansResult.
var KindDefaultPlans = Kind{Workflow: "DefaultPlans", ID: "default-plans", Summary: "Default plans", Pinned: true}

// KeepDefaultPlans creates, changes and deletes BackupPlans as the policy names them.
var KeepDefaultPlans = Activity[ScheduledInput, DefaultPlansResult]{
	"keep-default-plans", "Give namespaces the plans that the policy names for them",
}

// DefaultPlansResult counts what a pass has done to plans.
type DefaultPlansResult struct {
	Created int `json:"created,omitempty"`
	Changed int `json:"changed,omitempty"`
	Deleted int `json:"deleted,omitempty"`
	// Taken counts namespaces in which a tenant's plan has the name. It is left alone.
	Taken int `json:"taken,omitempty"`
	// Refused counts plans that the API server refused.
	Refused int `json:"refused,omitempty"`
	// Problem is the first of these.
	Problem string `json:"problem,omitempty"`
}
