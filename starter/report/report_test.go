package report_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vmware-tanzu/velero/pkg/apis/velero/shared"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/policy/quota"
	"holdfast.dev/holdfast/starter/report"
	"holdfast.dev/holdfast/starter/velero"
)

var noon = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return noon.Add(-d) }

func plan(namespace, name string, status metav1.ConditionStatus, days ...holdfastv1alpha1.Day) holdfastv1alpha1.BackupPlan {
	reason := map[metav1.ConditionStatus]string{metav1.ConditionTrue: "Met", metav1.ConditionFalse: "Stale"}[status]
	return holdfastv1alpha1.BackupPlan{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Status: holdfastv1alpha1.BackupPlanStatus{
			Conditions: []metav1.Condition{{
				Type: holdfastv1alpha1.ConditionObjectiveMet, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(ago(5 * time.Hour)),
			}},
			Days: days,
		},
	}
}

func objects() report.Objects {
	held := func(namespace string, good time.Time) velero.Holding {
		return velero.Holding{Namespace: namespace, Workloads: 1, LastGood: &good}
	}
	restore := oadpv1alpha1.NonAdminRestore{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "undo", CreationTimestamp: metav1.NewTime(ago(time.Hour))},
		Spec:       oadpv1alpha1.NonAdminRestoreSpec{RestoreSpec: &velerov1.RestoreSpec{BackupName: "<b>|nightly"}},
		Status: oadpv1alpha1.NonAdminRestoreStatus{
			Phase: "Created", VeleroRestore: &oadpv1alpha1.VeleroRestore{Status: &velerov1.RestoreStatus{Phase: velerov1.RestorePhaseCompleted}},
		},
	}
	latest := metav1.NewTime(ago(9 * time.Hour))
	database := fdbv1alpha1.FoundationDBBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "bank", Name: "ledger"},
		Status: fdbv1alpha1.FoundationDBBackupStatus{
			Backups: []fdbv1alpha1.BackupDetails{{LatestRestorable: &fdbv1alpha1.RestorePoint{Timestamp: &latest}}},
			Conditions: []metav1.Condition{{
				Type: fdbv1alpha1.ConditionObjectiveMet, Status: metav1.ConditionFalse, Reason: "Stale",
				LastTransitionTime: metav1.NewTime(ago(8 * time.Hour)),
			}},
		},
	}
	old := restore
	old.CreationTimestamp = metav1.NewTime(ago(1000 * time.Hour))
	partly := velero.Holding{Namespace: "half", Workloads: 1, LastPartly: new(ago(time.Hour)), LeftOut: []string{"secrets", "all but a|b"}}
	hourly := plan("bank", "hourly", metav1.ConditionFalse,
		holdfastv1alpha1.Day{Date: "2026-11-24", Good: 2, Missed: 3}, holdfastv1alpha1.Day{Date: "2025-01-01", Good: 9})
	hourly.Status.LastVerified = &holdfastv1alpha1.VerifiedRun{Name: "gone", Time: metav1.NewTime(ago(90 * time.Hour))}
	return report.Objects{
		Cluster: "west", Databases: []fdbv1alpha1.FoundationDBBackup{database},
		Holdings: []velero.Holding{
			held("shop", ago(time.Hour)), held("bank", ago(30*time.Hour)), {Namespace: "bare", Data: 1}, {Namespace: "empty"}, held("mine", ago(time.Hour)), partly,
		},
		Quotas: []velero.Quota{{
			Namespace: "bank", Rule: new(int), Selector: "tier=<gold>",
			Uses: []velero.Use{
				{Field: quota.MaxStored, Used: 10, Limit: 10},
				{Field: quota.MaxActive, Used: 1},
				{Field: quota.MaxPerDay, Used: 3, Limit: 20},
				{Field: quota.MaxBytes, Used: 3 << 29, Limit: 2 << 30},
			},
			Waiting: []velero.WaitingBackup{{Name: "hourly-1", Created: ago(time.Minute), Message: "full"}},
		}},
		Plans: []holdfastv1alpha1.BackupPlan{
			plan("shop", "nightly", metav1.ConditionTrue, holdfastv1alpha1.Day{Date: "2026-11-24", Good: 1}, holdfastv1alpha1.Day{Date: "2026-11-23", Failed: 1}),
			hourly,
		},
		Backups: []oadpv1alpha1.NonAdminBackup{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "nightly-1"},
			Status: oadpv1alpha1.NonAdminBackupStatus{
				VeleroBackup: &oadpv1alpha1.VeleroBackup{Status: &velerov1.BackupStatus{CompletionTimestamp: new(metav1.NewTime(ago(time.Hour)))}},
				Conditions:   []metav1.Condition{{Type: holdfastv1alpha1.ConditionVerified, Status: metav1.ConditionTrue}},
				LastDrill:    &oadpv1alpha1.BackupDrill{Name: "weekly", Concluded: metav1.NewTime(noon), RestoreSeconds: 9, ReadySeconds: 3},
			},
		}},
		Volumes: []velerov1.PodVolumeBackup{{Status: velerov1.PodVolumeBackupStatus{
			Progress: shared.DataMoveOperationProgress{TotalBytes: 3 << 30},
		}}},
		Restores: []oadpv1alpha1.NonAdminRestore{old, restore},
		Approvals: []oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequest{{Status: oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequestStatus{
			LastDecision: &oadpv1alpha1.ApprovalRecord{Decision: "approve", DecidedBy: "carol", Reason: "ticket 7", DecidedAt: metav1.NewTime(ago(2 * time.Hour))},
			VeleroBackupStorageLocationApprovalRequest: &oadpv1alpha1.VeleroBackupStorageLocationApprovalRequest{Namespace: "shop", Name: "offsite"},
		}}},
	}
}

func TestAReportSaysWhoIsProtected(t *testing.T) {
	r := report.Make(objects(), 72*time.Hour, noon)
	assert.Equal(t, map[report.Protection]int{
		report.Met: 1, report.Missed: 1, report.Unprotected: 1, report.Partly: 1, report.BackedUp: 1, report.Empty: 1,
	}, r.Summary)
	var names []string
	for _, row := range r.Namespaces {
		names = append(names, row.Namespace)
	}
	assert.Equal(t, []string{"bare", "half", "bank", "mine", "shop", "empty"}, names, "the worst first")
	assert.Equal(t, []report.Day{
		{Date: "2026-11-21"}, {Date: "2026-11-22"}, {Date: "2026-11-23", Failed: 1}, {Date: "2026-11-24", Good: 3, Missed: 3},
	}, r.Calendar)
	require.Len(t, r.Missing, 2)
	assert.Equal(t, "ledger", r.Missing[0].Name, "the longest first")
	assert.Equal(t, ago(9*time.Hour), *r.Missing[0].LastGood)
	assert.Equal(t, int64(5*3600), r.Missing[1].ForSeconds)
	assert.Equal(t, report.Stored{Backups: 1, VolumeBytes: 3 << 30}, r.Stored)
	require.Len(t, r.Restores, 1, "the other one is older than the report")
	assert.Equal(t, "Completed", r.Restores[0].Result)
	verified := map[string]string{}
	for _, row := range r.Namespaces {
		if row.Verified != nil {
			verified[row.Namespace] = row.Verified.Name
		}
	}
	assert.Equal(t, map[string]string{"shop": "nightly-1", "bank": "gone"}, verified, "a plan remembers one that is gone")
	require.Len(t, r.Approvals, 1)
	assert.Equal(t, "carol", r.Approvals[0].By)
}

func written(t *testing.T, r *report.Report, format string) string {
	t.Helper()
	var out strings.Builder
	require.NoError(t, r.Write(&out, format))
	return out.String()
}

func TestAReportIsWrittenForPeopleAndPrograms(t *testing.T) {
	r := report.Make(objects(), 72*time.Hour, noon)
	page := written(t, r, "html")
	assert.Contains(t, page, `<li class="bad"><b>2026-11-24</b>3 good<br>3 missed<br></li>`)
	assert.Contains(t, page, "&lt;b&gt;|nightly", "what tenants write is text")
	assert.Contains(t, page, "3 GiB")
	assert.Contains(t, page, `<td class="bad">partly (left out: secrets; all but a|b)</td>`)
	for _, foreign := range []string{"<script", "http:", "https:", "url(", "@import", "<link", "<img"} {
		assert.NotContains(t, page, foreign, "it needs nothing else")
	}
	text := written(t, r, "markdown")
	assert.Contains(t, text, "| 2026-11-24 | 3 | 0 | 3 | 0 |\n")
	assert.Contains(t, text, `| 2026-11-24 11:00 | shop/undo | &lt;b&gt;\|nightly | Completed |`)
	assert.Contains(t, text, `| half | partly (left out: secrets; all but a\|b) |`)
	assert.Contains(t, text, "| BackupPlan | bank/hourly | Stale | 5h | never |")
	var read report.Report
	require.NoError(t, json.Unmarshal([]byte(written(t, r, "json")), &read))
	again, err := json.Marshal(read)
	require.NoError(t, err)
	assert.JSONEq(t, written(t, r, "json"), string(again))
}

func TestAReportShowsWhatNamespacesUseOfTheirQuotas(t *testing.T) {
	r := report.Make(objects(), 72*time.Hour, noon)
	require.Equal(t, "bank", r.Namespaces[2].Namespace)
	require.NotNil(t, r.Namespaces[2].Quota)
	assert.Nil(t, r.Namespaces[0].Quota)
	const summary = "maxStored 10 of 10, maxPerDay 3 of 20, maxBytes 1.5Gi of 2Gi; 1 waits"
	assert.Contains(t, written(t, r, "html"), `<td class="warn">`+summary+`</td></tr>`)
	assert.Contains(t, written(t, r, "markdown"), "| 0 | 0 | 1 | 0 | "+summary+" |\n")
	assert.Contains(t, written(t, r, "json"), `"field": "maxPerDay",`)

	broken := objects()
	broken.Quotas, broken.QuotaProblem = nil, "quotas[0].maxStored must not be <negative>"
	r = report.Make(broken, 72*time.Hour, noon)
	assert.Contains(t, written(t, r, "html"), "Quotas are not shown: quotas[0].maxStored must not be &lt;negative&gt;")
	assert.Contains(t, written(t, r, "markdown"), `Quotas are not shown: quotas\[0].maxStored must not be &lt;negative&gt;`)
	assert.NotContains(t, written(t, r, "markdown"), "10 of 10")
}

func TestAReportOfNothingSaysSo(t *testing.T) {
	r := report.Make(report.Objects{Cluster: "west"}, time.Hour, noon)
	assert.Contains(t, written(t, r, "html"), "<p>None.</p>")
	assert.Contains(t, written(t, r, "markdown"), "## Restores\n\nNone.\n")
	assert.Contains(t, written(t, r, "json"), `"restores": []`)
}
