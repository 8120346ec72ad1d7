package metrics

import "time"

// RunResult is what has become of a run of a plan, as a label's value.
type RunResult string

// The results of runs.
const (
	RunMade    RunResult = "made"
	RunGood    RunResult = "good"
	RunFailed  RunResult = "failed"
	RunMissed  RunResult = "missed"
	RunSkipped RunResult = "skipped"
)

var planRuns = registered(newCounter("holdfast_plan_runs_total",
	"Runs of BackupPlans: made, and what became of them or of due times without a run.", "result"))

// Each result is on the page from the start, at zero.
func init() {
	for _, result := range []RunResult{RunMade, RunGood, RunFailed, RunMissed, RunSkipped} {
		planRuns.WithLabelValues(string(result))
	}
}

// PlanRuns counts runs of plans.
func PlanRuns(result RunResult, number int64) {
	if number > 0 {
		planRuns.WithLabelValues(string(result)).Add(float64(number))
	}
}

// PlanState is the state of a BackupPlan, as a label's value.
type PlanState string

// The states of plans.
const (
	PlanReady    PlanState = "ready"
	PlanPaused   PlanState = "paused"
	PlanNotReady PlanState = "not_ready"
	// PlanNew: its workflow has not seen it yet.
	PlanNew PlanState = "new"
)

// PlanCensus counts BackupPlans.
type PlanCensus struct {
	Plans map[PlanState]int
	// ObjectivesMissed counts plans whose newest good backup is older than their objective, VerificationsMissed those of which only
	// the newest verified backup is.
	ObjectivesMissed, VerificationsMissed int
	// Overdue counts plans whose next run should have begun ten minutes ago.
	Overdue int
	// LessContent counts plans whose newest good backup holds far less than the usual ones.
	LessContent int
	// OldestGood is the begin of the newest good backup of that plan for which it is the oldest; zero if no plan has one.
	OldestGood time.Time
	// OldestVerified is when the newest verified backup was complete of that plan for which it is the oldest; zero if no plan has
	// one.
	OldestVerified time.Time
	// OldestPending is since when the oldest backup has been due for deletion, of any plan; zero if none is.
	OldestPending time.Time
	// Each are single plans; nil unless the metrics have the tenants' names.
	Each []PlanSeries
}

// PlanSeries is what the metrics say of a single plan.
type PlanSeries struct {
	Namespace, Name string
	Missed          bool
	// LastGood is the begin of the newest good backup; zero if there is none.
	LastGood time.Time
	// LastVerified is when the newest verified backup was complete; zero if there is none.
	LastVerified time.Time
}

// OverdueAfter is how long after its begin a run counts as overdue.
const OverdueAfter = 10 * time.Minute

var (
	plans            = describe("holdfast_plans", "BackupPlans, by state.", "state")
	objectivesMissed = describe("holdfast_objectives_missed",
		"Objects of a kind whose newest good backup, or latest restorable point, is older than their objective.", "kind")
	plansOverdue = describe("holdfast_plans_overdue", "BackupPlans whose next run should have begun ten minutes ago.")
	lessContent  = describe("holdfast_plans_less_content",
		"BackupPlans whose newest good backup holds nothing, or far less than those before it.")
	oldestGood = describe("holdfast_plan_oldest_good_timestamp_seconds",
		"Begin of the newest good backup of the BackupPlan for which it is the oldest.")
	verificationsMissed = describe("holdfast_plan_verifications_missed",
		"BackupPlans whose newest good backup is recent enough, and whose newest verified backup is older than their objective.")
	oldestVerified = describe("holdfast_plan_oldest_verified_timestamp_seconds",
		"Completion of the newest verified backup of the BackupPlan for which it is the oldest.")
	retentionPending = describe("holdfast_plan_retention_oldest_pending_timestamp_seconds",
		"Since when the oldest backup that no rule of its plan keeps has not been deleted.")
	planMissed = describe("holdfast_plan_objective_missed",
		"1 if the plan's newest good backup, or its newest verified one, is older than its objective, else 0. "+
			"Only with --metrics-tenant-labels.", "namespace", "plan")
	planGood = describe("holdfast_plan_last_good_timestamp_seconds",
		"Begin of the plan's newest good backup. Only with --metrics-tenant-labels.", "namespace", "plan")
	planVerified = describe("holdfast_plan_last_verified_timestamp_seconds",
		"Completion of the plan's newest verified backup. Only with --metrics-tenant-labels.", "namespace", "plan")
)

func (c *PlanCensus) collect(into gauges) {
	for _, state := range []PlanState{PlanReady, PlanPaused, PlanNotReady, PlanNew} {
		into.set(plans, float64(c.Plans[state]), string(state))
	}
	into.set(objectivesMissed, float64(c.ObjectivesMissed), "BackupPlan")
	into.set(verificationsMissed, float64(c.VerificationsMissed))
	into.set(plansOverdue, float64(c.Overdue))
	into.set(lessContent, float64(c.LessContent))
	into.setTime(oldestGood, c.OldestGood)
	into.setTime(oldestVerified, c.OldestVerified)
	into.setTime(retentionPending, c.OldestPending)
	for _, plan := range c.Each {
		into.set(planMissed, number(plan.Missed), plan.Namespace, plan.Name)
		into.setTime(planGood, plan.LastGood, plan.Namespace, plan.Name)
		into.setTime(planVerified, plan.LastVerified, plan.Namespace, plan.Name)
	}
}
