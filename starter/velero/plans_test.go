package velero

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/starter/operator"
	"holdfast.dev/holdfast/starter/operator/operatortest"
	"holdfast.dev/holdfast/workflows/contract"
)

func nightly() *holdfastv1alpha1.BackupPlan {
	at := func(day int) metav1.Time { return metav1.NewTime(time.Date(2026, 11, day, 1, 0, 0, 0, time.UTC)) }
	next, expires := at(25), at(30)
	return &holdfastv1alpha1.BackupPlan{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "nightly", UID: "u-1", CreationTimestamp: metav1.NewTime(time.Now().Add(-25 * 24 * time.Hour)),
		},
		Spec: holdfastv1alpha1.BackupPlanSpec{
			Schedule: "0 2 * * *", TimeZone: "Europe/Berlin", Jitter: "0s", Objective: &holdfastv1alpha1.Objective{RecoveryPoint: "26h"},
		},
		Status: holdfastv1alpha1.BackupPlanStatus{
			Conditions: []metav1.Condition{
				{Type: "Ready", Status: "True", Reason: "Scheduled", Message: "runs are made by the schedule"},
				{Type: "ObjectiveMet", Status: "True", Reason: "Met", Message: "the newest good backup is younger than 26h"},
			},
			NextRun: &next, LastGood: &holdfastv1alpha1.GoodRun{Name: "nightly-1", Time: at(24), Expires: &expires},
			Content: &holdfastv1alpha1.Content{
				Usual:  []holdfastv1alpha1.RunContent{{Name: "nightly-0", Items: new(int64(40)), Volumes: 2}},
				Newest: &holdfastv1alpha1.RunContent{Name: "nightly-1", Items: new(int64(3))}, Less: 1,
			},
			Recent: []holdfastv1alpha1.Run{{Name: "nightly-1", Time: at(24), Phase: "Completed"}},
			Counts: holdfastv1alpha1.Counts{Good: 3, Missed: 1, Stored: 2},
			Retention: &holdfastv1alpha1.Retention{
				Kept: []holdfastv1alpha1.Kept{{Name: "nightly-1", By: "last"}}, MoreKept: 4,
				Blocked: []holdfastv1alpha1.BackupReason{{Name: "nightly-0", Why: "used by NonAdminRestore r"}},
			},
		},
	}
}

func TestPlansAreListed(t *testing.T) {
	list := &holdfastv1alpha1.BackupPlanList{Items: []holdfastv1alpha1.BackupPlan{*nightly()}}
	rows := operator.RowsOf(list, contract.KindPlan, "west", map[string]bool{"west/plan/shop/nightly/u-1": true}, planRow)
	text := operatortest.Printed(t, "table", rows, func(out io.Writer) error { return operator.PrintRows(out, planColumns, rows) })
	assert.Equal(t, []string{
		"NAMESPACE NAME PHASE SCHEDULE PAUSED LAST-GOOD LAST-VERIFIED NEXT-RUN OBJECTIVE AGE WORKFLOW",
		"shop nightly Scheduled 0 2 * * * 2026-11-24T01:00:00Z 2026-11-25T01:00:00Z Met 25d running",
	}, operatortest.Lines(text))
}

func TestADescribedPlanSaysWhatBecomesOfItsBackups(t *testing.T) {
	described := describePlan(nightly(), func(contract.Kind, client.Object) operator.DescribedWorkflow {
		return operator.DescribedWorkflow{ID: "west/plan/shop/nightly/u-1", Status: "Running"}
	})
	assert.Equal(t, []string{
		"Namespace: shop", "Name: nightly", "Schedule: 0 2 * * * Europe/Berlin",
		"Next runs: 2026-11-25T01:00:00Z", "2026-11-26T01:00:00Z", "2026-11-27T01:00:00Z", "2026-11-28T01:00:00Z", "2026-11-29T01:00:00Z",
		"Last good: nightly-1 of 2026-11-24T01:00:00Z, expires 2026-11-30T01:00:00Z",
		"Content: nightly-1: 3 items, 0 volumes; usual are at least 40 and 2; 1 in a row hold far less", "Objective: 26h",
		"Run nightly-1: due 2026-11-24T01:00:00Z Completed", "Runs: 3 good, 0 failed, 1 missed, 0 skipped", "Stored: 2",
		"Kept: nightly-1: last", "and 4 more", "Blocked: nightly-0: used by NonAdminRestore r",
		"Workflow: west/plan/shop/nightly/u-1", "Workflow status: Running",
		"Condition Ready: True (Scheduled) runs are made by the schedule",
		"Condition ObjectiveMet: True (Met) the newest good backup is younger than 26h",
	}, operatortest.Lines(operatortest.Printed(t, "table", described, described.Print)))
}

func TestWhatTheNewestBackupHolds(t *testing.T) {
	newest := &holdfastv1alpha1.RunContent{Name: "nightly-1"}
	assert.Equal(t, "nightly-1: not counted by Velero", holds(&holdfastv1alpha1.Content{Newest: newest}))
	newest.Items = new(int64(40))
	assert.Equal(t, "nightly-1: 40 items, 0 volumes", holds(&holdfastv1alpha1.Content{Newest: newest}))
}

// Where both are given, a run is due on a day that either names, also if one begins with a star: as CronJob and Velero read it, and
// other than crontab(5) says.
func TestTheNextRunsShowWhatTwoFieldsOfDaysMean(t *testing.T) {
	plan := nightly()
	plan.Spec.Schedule = "0 2 */2 * 1"
	var days []string
	for _, at := range nextRuns(plan) {
		days = append(days, at.UTC().Format("Mon 2"))
	}
	assert.Equal(t, []string{"Wed 25", "Fri 27", "Sun 29", "Mon 30", "Tue 1"}, days)

	plan.Status.NextRun = nil
	assert.Empty(t, nextRuns(plan), "it is paused, or not ready")
	plan.Spec.Schedule = "never"
	assert.Empty(t, nextRuns(plan))
}
