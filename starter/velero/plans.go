package velero

import (
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/starter/operator"
	"holdfast.dev/holdfast/starter/terminal"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/plan/content"
	"holdfast.dev/holdfast/workflows/plan/due"
)

// Plans is how BackupPlans are listed and described.
var Plans = operator.Show[holdfastv1alpha1.BackupPlanList](contract.KindPlan, "plan", planColumns, planRow, describePlan)

// listedPlan is one row of `holdfast list plans`. Its phase is the reason of condition Ready.
type listedPlan struct {
	operator.Listed
	Schedule  string                    `json:"schedule"`
	Paused    holdfastv1alpha1.PausedBy `json:"paused,omitempty"`
	LastGood  *metav1.Time              `json:"lastGood,omitempty"`
	Verified  *metav1.Time              `json:"lastVerified,omitempty"`
	NextRun   *metav1.Time              `json:"nextRun,omitempty"`
	Objective string                    `json:"objective,omitempty"`
}

var planColumns = operator.ColumnsOf(func(p listedPlan) operator.Listed { return p.Listed },
	operator.NewColumn("SCHEDULE", func(p listedPlan) string { return terminal.Printable(p.Schedule) }),
	operator.NewColumn("PAUSED", func(p listedPlan) string { return string(p.Paused) }),
	operator.NewColumn("LAST-GOOD", func(p listedPlan) string { return operator.Moment(p.LastGood) }),
	operator.NewColumn("LAST-VERIFIED", func(p listedPlan) string { return operator.Moment(p.Verified) }),
	operator.NewColumn("NEXT-RUN", func(p listedPlan) string { return operator.Moment(p.NextRun) }),
	operator.NewColumn("OBJECTIVE", func(p listedPlan) string { return p.Objective }),
)

func planRow(plan *holdfastv1alpha1.BackupPlan, of operator.Listed) listedPlan {
	status := plan.Status
	of.Phase = reasonOf(status.Conditions, holdfastv1alpha1.ConditionReady)
	row := listedPlan{
		Listed: of, Schedule: plan.Spec.Schedule, Paused: status.Paused, NextRun: status.NextRun,
		Objective: reasonOf(status.Conditions, holdfastv1alpha1.ConditionObjectiveMet),
	}
	if status.LastGood != nil {
		row.LastGood = &status.LastGood.Time
	}
	if status.LastVerified != nil {
		row.Verified = &status.LastVerified.Time
	}
	return row
}

func reasonOf(conditions []metav1.Condition, kind string) string {
	if condition := meta.FindStatusCondition(conditions, kind); condition != nil {
		return condition.Reason
	}
	return ""
}

// describedPlan is what `holdfast describe plan` shows.
type describedPlan struct {
	Namespace string                            `json:"namespace"`
	Name      string                            `json:"name"`
	Spec      holdfastv1alpha1.BackupPlanSpec   `json:"spec"`
	Status    holdfastv1alpha1.BackupPlanStatus `json:"status"`
	NextRuns  []metav1.Time                     `json:"nextRuns,omitempty"`
	Workflow  operator.DescribedWorkflow        `json:"workflow"`
}

func describePlan(plan *holdfastv1alpha1.BackupPlan, workflow operator.WorkflowDescriber) operator.Description {
	return &describedPlan{
		Namespace: plan.Namespace, Name: plan.Name, Spec: plan.Spec, Status: plan.Status, NextRuns: nextRuns(plan),
		Workflow: workflow(contract.KindPlan, plan),
	}
}

// shownRuns is how many of the next runs are shown: enough to see what a schedule with two fields of days means.
const shownRuns = 5

// nextRuns are the next runs of a plan, from that in its status on; none while it makes none.
func nextRuns(plan *holdfastv1alpha1.BackupPlan) (runs []metav1.Time) {
	schedule, err := due.Parse(plan.Spec.Schedule, plan.Spec.TimeZone)
	if err != nil || plan.Status.NextRun == nil {
		return nil
	}
	first := plan.Status.NextRun.Time
	var most *time.Duration
	if given, err := time.ParseDuration(plan.Spec.Jitter); err == nil {
		most = &given
	}
	jitter := due.Jitter(string(plan.UID), most, schedule.Period(first))
	for _, at := range schedule.NextN(first.Add(-jitter-time.Second), shownRuns) {
		runs = append(runs, metav1.NewTime(at.Add(jitter)))
	}
	return runs
}

func (d *describedPlan) Print(out io.Writer) error {
	sheet := operator.NewSheet(out)
	sheet.Line("Namespace", d.Namespace)
	sheet.Line("Name", d.Name)
	sheet.Line("Schedule", strings.TrimSpace(d.Spec.Schedule+" "+d.Spec.TimeZone))
	sheet.Line("Paused by", string(d.Status.Paused))
	var runs []string
	for _, at := range d.NextRuns {
		runs = append(runs, operator.Moment(&at))
	}
	sheet.Line("Next runs", strings.Join(runs, "\n"))
	if good := d.Status.LastGood; good != nil {
		sheet.Line("Last good", good.Name+" of "+operator.Moment(&good.Time)+until(good.Expires))
	}
	if v := d.Status.LastVerified; v != nil {
		text := fmt.Sprintf("%s of %s; verified at %s", v.Name, operator.Moment(&v.Time), operator.Moment(&v.Verified))
		if v.Measured() {
			text += fmt.Sprintf(", restored in %d s, ready %d s later", v.RestoreSeconds, v.ReadySeconds)
		}
		sheet.Line("Last verified", text)
	}
	if c := d.Status.Content; c != nil && c.Newest != nil {
		sheet.Line("Content", holds(c))
	}
	if objective := d.Spec.Objective; objective != nil {
		sheet.Line("Objective", objective.RecoveryPoint)
		sheet.Line("Objective of drills", objective.Verified)
	}
	d.printDrills(sheet)
	for _, run := range d.Status.Recent {
		sheet.Line("Run "+run.Name, strings.TrimSpace("due "+operator.Moment(&run.Time)+" "+run.Phase))
	}
	counts := d.Status.Counts
	sheet.Line("Runs",
		fmt.Sprintf("%d good, %d failed, %d missed, %d skipped", counts.Good, counts.Failed, counts.Missed, counts.Skipped))
	sheet.Line("Stored", fmt.Sprint(counts.Stored))
	if r := d.Status.Retention; r != nil {
		why := func(b holdfastv1alpha1.BackupReason) string { return b.Name + ": " + b.Why }
		showRetention(sheet, "Kept", r.Kept, func(b holdfastv1alpha1.Kept) string { return b.Name + ": " + b.By }, r.MoreKept)
		showRetention(sheet, "To be deleted", r.Due, why, r.MoreDue)
		showRetention(sheet, "Blocked", r.Blocked, why, r.MoreBlocked)
	}
	sheet.Workflow(d.Workflow)
	sheet.Conditions(d.Status.Conditions)
	return sheet.Flush()
}

// holds says what the newest good backup holds, and what is usual.
func holds(c *holdfastv1alpha1.Content) string {
	if c.Newest.Items == nil {
		return c.Newest.Name + ": not counted by Velero"
	}
	text := fmt.Sprintf("%s: %d items, %d volumes", c.Newest.Name, *c.Newest.Items, c.Newest.Volumes)
	if c.Less > 0 {
		items, volumes := content.Least(c.Usual)
		text += fmt.Sprintf("; usual are at least %d and %d; %d in a row hold far less", items, volumes, c.Less)
	}
	return text
}

func until(expires *metav1.Time) string {
	if expires == nil {
		return ""
	}
	return ", expires " + operator.Moment(expires)
}

func showRetention[B any](sheet operator.Sheet, verdict string, backups []B, say func(B) string, more int64) {
	var lines []string
	for _, b := range backups {
		lines = append(lines, say(b))
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	sheet.Line(verdict, strings.Join(lines, "\n"))
}

func (d *describedPlan) printDrills(sheet operator.Sheet) {
	spec, drills := d.Spec.Drill, d.Status.Drills
	if spec == nil || drills == nil {
		return
	}
	sheet.Line("Drills",
		fmt.Sprintf("%s: %d made, %d missed, %d skipped", spec.Schedule, drills.Made, drills.Missed, drills.Skipped))
	sheet.Moment("Next drill", drills.Next)
	if last := drills.Last; last != nil {
		sheet.Line("Last drill", strings.TrimSpace(fmt.Sprintf("%s of %s: %s %s", last.Name, last.Backup, last.Phase, last.Verified)))
	}
	if skipped := drills.LastSkipped; skipped != nil {
		sheet.Line("Last skipped drill", operator.Moment(&skipped.Time)+": "+skipped.Why)
	}
}
