package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

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

// RunResults are all results. Each is on the page from the start, at zero.
var RunResults = []RunResult{RunMade, RunGood, RunFailed, RunMissed, RunSkipped}

var planRuns = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "holdfast_plan_runs_total",
	Help: "Runs of BackupPlans: made, and what became of them or of due times without a run.",
}, []string{"result"})

func init() {
	ctrlmetrics.Registry.MustRegister(planRuns)
	for _, result := range RunResults {
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

// PlanStates are all states.
var PlanStates = []PlanState{PlanReady, PlanPaused, PlanNotReady, PlanNew}

// PlanCensus counts BackupPlans.
type PlanCensus struct {
	Plans map[PlanState]int
	// ObjectivesMissed counts plans whose condition ObjectiveMet is False.
	ObjectivesMissed int
	// Overdue counts plans whose next run should have begun ten minutes ago.
	Overdue int
	// LessContent counts plans whose newest good backup holds far less than the usual ones.
	LessContent int
	// OldestGood is the begin of the newest good backup of that plan for which it is the oldest; zero if no plan has one.
	OldestGood time.Time
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
}

// OverdueAfter is how long after its begin a run counts as overdue.
const OverdueAfter = 10 * time.Minute

var (
	plans            = prometheus.NewDesc("holdfast_plans", "BackupPlans, by state.", []string{"state"}, nil)
	objectivesMissed = prometheus.NewDesc("holdfast_objectives_missed",
		"Objects of a kind whose newest good backup, or latest restorable point, is older than their objective.", []string{"kind"}, nil)
	plansOverdue = prometheus.NewDesc("holdfast_plans_overdue",
		"BackupPlans whose next run should have begun ten minutes ago.", nil, nil)
	lessContent = prometheus.NewDesc("holdfast_plans_less_content",
		"BackupPlans whose newest good backup holds nothing, or far less than those before it.", nil, nil)
	oldestGood = prometheus.NewDesc("holdfast_plan_oldest_good_timestamp_seconds",
		"Begin of the newest good backup of the BackupPlan for which it is the oldest.", nil, nil)
	retentionPending = prometheus.NewDesc("holdfast_plan_retention_oldest_pending_timestamp_seconds",
		"Since when the oldest backup that no rule of its plan keeps has not been deleted.", nil, nil)
	planMissed = prometheus.NewDesc("holdfast_plan_objective_missed",
		"1 if the plan's newest good backup is older than its objective, else 0. Only with --metrics-tenant-labels.",
		[]string{"namespace", "plan"}, nil)
	planGood = prometheus.NewDesc("holdfast_plan_last_good_timestamp_seconds",
		"Begin of the plan's newest good backup. Only with --metrics-tenant-labels.", []string{"namespace", "plan"}, nil)
)

func describePlans(descriptions chan<- *prometheus.Desc) {
	for _, description := range []*prometheus.Desc{
		plans, objectivesMissed, plansOverdue, lessContent, oldestGood, retentionPending, planMissed, planGood,
	} {
		descriptions <- description
	}
}

func (c *PlanCensus) collect(gauge func(description *prometheus.Desc, value float64, labels ...string)) {
	for _, state := range PlanStates {
		gauge(plans, float64(c.Plans[state]), string(state))
	}
	gauge(objectivesMissed, float64(c.ObjectivesMissed), "BackupPlan")
	gauge(plansOverdue, float64(c.Overdue))
	gauge(lessContent, float64(c.LessContent))
	for description, at := range map[*prometheus.Desc]time.Time{oldestGood: c.OldestGood, retentionPending: c.OldestPending} {
		if !at.IsZero() {
			gauge(description, float64(at.Unix()))
		}
	}
	for _, plan := range c.Each {
		gauge(planMissed, number(plan.Missed), plan.Namespace, plan.Name)
		if !plan.LastGood.IsZero() {
			gauge(planGood, float64(plan.LastGood.Unix()), plan.Namespace, plan.Name)
		}
	}
}
