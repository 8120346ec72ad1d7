package metrics_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"holdfast.dev/holdfast/k8s/metrics"
	"holdfast.dev/holdfast/k8s/metrics/metricstest"
	"holdfast.dev/holdfast/k8s/velero"
	"holdfast.dev/holdfast/workflows/contract"
)

func TestMain(m *testing.M) {
	metrics.RegisterFDB()
	m.Run()
}

func TestVelerosFinalPhasesAreResults(t *testing.T) {
	for phase, want := range map[string]metrics.Result{
		"Completed":        metrics.ResultCompleted,
		"PartiallyFailed":  metrics.ResultPartiallyFailed,
		"Failed":           metrics.ResultFailed,
		"FailedValidation": metrics.ResultFailedValidation,
		"Cancelled":        metrics.ResultCancelled,
		"Canceled":         metrics.ResultCancelled,
	} {
		assert.Equal(t, want, metrics.VeleroResult(phase))
		assert.Contains(t, metrics.Results, want)
	}
}

// An alert on an increase sees nothing of a series that begins at one.
func TestEveryResultIsThereFromTheStart(t *testing.T) {
	metrics.FinalizationTaskKnown("volumes")
	families, err := ctrlmetrics.Registry.Gather()
	require.NoError(t, err)
	results := map[string][]metrics.Result{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "result" {
					results[family.GetName()] = append(results[family.GetName()], metrics.Result(label.GetValue()))
				}
			}
		}
	}
	assert.ElementsMatch(t, metrics.Results, results["holdfast_backups_total"])
	assert.ElementsMatch(t, metrics.Results, results["holdfast_restores_total"])
	assert.Equal(t, []metrics.Result{"completed", "partially_failed"}, results["holdfast_restore_finalization_tasks_total"])
	assert.Equal(t, []metrics.Result{"aborted", "completed", "failed"}, results["holdfast_foundationdbrestores_ended_total"])
	for _, job := range []contract.FDBJob{contract.FDBJobExpire, contract.FDBJobDelete} {
		for _, outcome := range []contract.FDBTurnOutcome{
			contract.FDBTurnDone, contract.FDBTurnRefused, contract.FDBTurnNothing, contract.FDBTurnNotYet, contract.FDBTurnFailed,
		} {
			series := fmt.Sprintf("holdfast_fdb_expiry_turns_total{job=%q,outcome=%q}", job, outcome)
			assert.True(t, present(families, series), series)
		}
	}
}

// present reports whether a page holds a series, whatever its value.
func present(families []*dto.MetricFamily, series string) bool {
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			var labels []string
			for _, label := range metric.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", label.GetName(), label.GetValue()))
			}
			if family.GetName()+"{"+strings.Join(labels, ",")+"}" == series {
				return true
			}
		}
	}
	return false
}

// Users choose URLs: however many there are, the page stays bounded, and none goes uncounted.
func TestURLsOfDataThatWereLeftAreBounded(t *testing.T) {
	const series = 600
	left := func() (total float64, urls int) {
		families, err := ctrlmetrics.Registry.Gather()
		require.NoError(t, err)
		for _, family := range families {
			if family.GetName() == "holdfast_foundationdbbackup_data_left_total" {
				for _, metric := range family.GetMetric() {
					total += metric.GetCounter().GetValue()
				}
				urls = len(family.GetMetric())
			}
		}
		return total, urls
	}
	before, _ := left()
	for i := range series {
		metrics.FDBDataLeft(fmt.Sprintf("blobstore://k@s3/bounded-%d?bucket=b", i))
	}
	after, urls := left()
	assert.InDelta(t, series, after-before, 0)
	assert.Equal(t, 501, urls)
	assert.InDelta(t, 1, metricstest.Counted(t, `holdfast_foundationdbbackup_data_left_total{url="others"}`, func() {
		metrics.FDBDataLeft("blobstore://k@s3/one-more?bucket=b")
	}), 0)
}

// Velero gives no time of completion for what it refused, and clocks differ.
func TestTheLagOfARestoreIsMeasured(t *testing.T) {
	const mirror = "holdfast_restore_mirror_seconds"
	sum := metricstest.Sum(t, mirror)
	assert.Zero(t, metricstest.Counted(t, mirror, func() { metrics.Restores.Mirrored(time.Time{}) }))
	assert.InDelta(t, 2, metricstest.Counted(t, mirror, func() {
		metrics.Restores.Mirrored(time.Now().Add(-30 * time.Second))
		metrics.Restores.Mirrored(time.Now().Add(time.Minute))
	}), 0)
	assert.InDelta(t, 30, metricstest.Sum(t, mirror)-sum, 5)
}

func TestAFinishedBackupIsCountedAndMeasured(t *testing.T) {
	const (
		completion = "holdfast_backup_completion_seconds"
		mirror     = "holdfast_backup_mirror_seconds"
	)
	ago := func(seconds int) time.Time { return time.Now().Add(-time.Duration(seconds) * time.Second) }
	tests := map[string]struct {
		created, completed               func() time.Time
		counted                          bool
		wantCompletion, wantMirror       float64
		wantCompletions, wantMirrorCount float64
	}{
		"as usual": {
			created: func() time.Time { return ago(60) }, completed: func() time.Time { return ago(2) },
			counted: true, wantCompletion: 60, wantMirror: 2, wantCompletions: 1, wantMirrorCount: 1,
		},
		"refused by Velero, which then gives no time of completion": {
			created: func() time.Time { return ago(60) }, completed: func() time.Time { return time.Time{} },
			counted: true, wantCompletion: 60, wantCompletions: 1,
		},
		"the API server's clock ahead of ours": {
			created: func() time.Time { return ago(-3) }, completed: func() time.Time { return ago(-3) },
			counted: true, wantCompletions: 1, wantMirrorCount: 1,
		},
		"synced: complete before its NonAdminBackup came": {
			created: func() time.Time { return ago(60) }, completed: func() time.Time { return ago(3600) },
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				completions, mirrors := metricstest.Value(t, completion), metricstest.Value(t, mirror)
				took, lag := metricstest.Sum(t, completion), metricstest.Sum(t, mirror)
				counted := metricstest.Counted(t, `holdfast_backups_total{result="partially_failed"}`, func() {
					metrics.BackupFinished("PartiallyFailed", test.created(), test.completed())
				})
				assert.Equal(t, test.counted, counted == 1)
				assert.InDelta(t, test.wantCompletions, metricstest.Value(t, completion)-completions, 0)
				assert.InDelta(t, test.wantMirrorCount, metricstest.Value(t, mirror)-mirrors, 0)
				assert.InDelta(t, test.wantCompletion, metricstest.Sum(t, completion)-took, 1e-6)
				assert.InDelta(t, test.wantMirror, metricstest.Sum(t, mirror)-lag, 1e-6)
			})
		})
	}
}

func TestEachCallMovesItsSeries(t *testing.T) {
	for series, call := range map[string]func(){
		"holdfast_backup_creation_seconds":                              func() { metrics.Backups.Created(time.Now()) },
		`holdfast_backups_total{result="rejected"}`:                     metrics.Backups.Rejected,
		`holdfast_backups_total{result="deleted"}`:                      metrics.Backups.Deleted,
		"holdfast_velero_stalled_total":                                 metrics.Stalled,
		"holdfast_restore_creation_seconds":                             func() { metrics.Restores.Created(time.Now()) },
		`holdfast_restores_total{result="rejected"}`:                    metrics.Restores.Rejected,
		`holdfast_restores_total{result="deleted"}`:                     metrics.Restores.Deleted,
		`holdfast_restores_total{result="partially_failed"}`:            func() { metrics.Restores.Finished("PartiallyFailed", time.Now()) },
		`holdfast_patch_conflicts_total{resource="nonadminbackups"}`:    func() { metrics.PatchConflict("nonadminbackups") },
		`holdfast_activity_retries_total{activity_type="admit-backup"}`: func() { metrics.ActivityRetried("admit-backup") },
		`holdfast_access_denied_total{activity_type="admit-backup"}`:    func() { metrics.AccessDenied("admit-backup") },
		`holdfast_signal_seconds{kind="NonAdminBackup"}`:                func() { metrics.SignalAcknowledged("NonAdminBackup", time.Now()) },
		`holdfast_signal_failures_total{kind="NonAdminBackup"}`:         func() { metrics.SignalFailed("NonAdminBackup") },

		`holdfast_turn_wait_seconds{lane="drill",pool="backups"}`: func() {
			metrics.TurnUsed(metrics.TurnLane{Pool: "backups", Name: "drill"}, time.Now())
		},

		`holdfast_fdb_tool_runs_total{operation="start",result="ok"}`:           func() { metrics.ToolRun("start", "", time.Second) },
		`holdfast_fdb_tool_runs_total{operation="start",result="AccessDenied"}`: func() { metrics.ToolRun("start", "AccessDenied", 0) },
		`holdfast_fdb_tool_seconds{operation="status"}`:                         func() { metrics.ToolRun("status", "Timeout", time.Second) },
		`holdfast_foundationdbbackups_released_total{result="stopped"}`:         func() { metrics.FDBBackupReleased(false) },
		`holdfast_foundationdbbackups_released_total{result="abandoned"}`:       func() { metrics.FDBBackupReleased(true) },

		`holdfast_fdb_expiry_turns_total{job="expire",outcome="Refused"}`: func() { metrics.FDBTurnEnded("expire", "Refused", time.Second) },
		`holdfast_fdb_expiry_turn_seconds{job="delete"}`:                  func() { metrics.FDBTurnEnded("delete", "Done", -time.Second) },
		`holdfast_foundationdbrestores_ended_total{result="aborted"}`:     func() { metrics.FDBRestoreEnded("aborted") },
		`holdfast_foundationdb_drills_total{reason="Verified"}`:           func() { metrics.FDBDrillConcluded("Verified") },
		"holdfast_foundationdb_drill_restore_seconds":                     func() { metrics.FDBDrillRestored(3) },
	} {
		assert.InDelta(t, 1, metricstest.Counted(t, series, call), 0, series)
	}
	for series, call := range map[string]func(bool){
		"holdfast_policy_problem":                func(yes bool) { metrics.SetPolicyProblem(yes) },
		"holdfast_decisions_through_temporal":    func(yes bool) { metrics.SetDecisionsThroughTemporal(yes) },
		`holdfast_dependency_up{check="policy"}`: func(yes bool) { metrics.SetDependencyUp("policy", yes) },
	} {
		call(true)
		assert.InDelta(t, 1, metricstest.Value(t, series), 0, series)
		call(false)
		assert.InDelta(t, 0, metricstest.Value(t, series), 0, series)
	}
}

func TestTheCensusIsTakenAtEachScrape(t *testing.T) {
	var census *metrics.Census
	registry := prometheus.NewRegistry()
	require.NoError(t, registry.Register(metrics.NewCensusCollector(func() *metrics.Census { return census })))
	scraped := func() map[string]float64 {
		families, err := registry.Gather()
		require.NoError(t, err)
		series := map[string]float64{}
		for _, family := range families {
			for _, metric := range family.GetMetric() {
				name := family.GetName()
				for _, label := range metric.GetLabel() {
					name += " " + label.GetValue()
				}
				series[name] = metric.GetGauge().GetValue()
			}
		}
		return series
	}
	assert.Empty(t, scraped(), "not known yet: no series, rather than zeros")

	census = &metrics.Census{
		VeleroBackups: map[velero.State]int{velero.StateWaiting: 2},
		Phases: map[*metrics.Phases]map[string]int{
			metrics.NonAdminBackups: {"new": 3}, metrics.StorageLocations: {"created": 4}, metrics.NonAdminRestores: {"backing_off": 5},
		},
		StalledRestores: 6,
		VeleroRestores:  map[velero.State]int{velero.StateFinalizing: 7},
	}
	want := map[string]float64{
		"holdfast_velero_backups waiting": 2, "holdfast_velero_backups in_progress": 0, "holdfast_velero_backups finalizing": 0,
		"holdfast_velero_backups deleting": 0, "holdfast_velero_backups finished": 0, "holdfast_velero_backups unknown": 0,
		"holdfast_nonadminbackups new": 3, "holdfast_stalled_backups": 0,
		"holdfast_storage_locations created": 4, "holdfast_approvals_pending": 0,
		"holdfast_nonadminrestores backing_off": 5, "holdfast_stalled_restores": 6,
		"holdfast_velero_restores waiting": 0, "holdfast_velero_restores in_progress": 0, "holdfast_velero_restores finalizing": 7,
		"holdfast_velero_restores deleting": 0, "holdfast_velero_restores finished": 0, "holdfast_velero_restores unknown": 0,
		"holdfast_plans ready": 0, "holdfast_plans paused": 0, "holdfast_plans not_ready": 0, "holdfast_plans new": 0,
		"holdfast_objectives_missed BackupPlan": 0, "holdfast_plans_overdue": 0, "holdfast_plans_less_content": 0,
		"holdfast_plan_verifications_missed": 0,
	}
	assert.Equal(t, want, scraped())

	census.LastStart, census.LastValidation, census.Stalled = time.Unix(1_780_000_000, 0), time.Unix(1_780_000_060, 0), 1
	want["holdfast_velero_last_start_timestamp_seconds"], want["holdfast_stalled_backups"] = 1_780_000_000, 1
	want["holdfast_velero_last_validation_timestamp_seconds"] = 1_780_000_060
	census.PendingApprovals, census.OldestPending = 2, time.Unix(1_780_000_120, 0)
	want["holdfast_approvals_pending"], want["holdfast_approval_oldest_pending_timestamp_seconds"] = 2, 1_780_000_120
	assert.Equal(t, want, scraped())

	census.FoundationDB = metrics.FDBCensus{
		Backups: map[metrics.FDBState]int{metrics.FDBReconciled: 2}, ObjectivesMissed: 4,
		Conditions: map[metrics.FDBCondition]int{{Type: "MisconfiguredBackup", Reason: "SecretMissing"}: 3},
	}
	want["holdfast_foundationdbbackups reconciled"], want["holdfast_foundationdbbackups unreconciled"] = 2, 0
	want["holdfast_foundationdbbackups deleting"] = 0
	want["holdfast_objectives_missed FoundationDBBackup"] = 4
	want["holdfast_foundationdbbackup_conditions SecretMissing MisconfiguredBackup"] = 3 // labels in alphabetical order
	assert.Equal(t, want, scraped(), "without one that runs or is in trouble, no times")
	census.FoundationDB.OldestRestorable, census.FoundationDB.OldestFailure = time.Unix(1_780_000_180, 0), time.Unix(1_780_000_240, 0)
	census.Plans = metrics.PlanCensus{
		Plans: map[metrics.PlanState]int{metrics.PlanReady: 7}, ObjectivesMissed: 8, Overdue: 9, LessContent: 10,
		VerificationsMissed: 11, OldestVerified: time.Unix(1_780_000_420, 0),
		OldestGood: time.Unix(1_780_000_300, 0), OldestPending: time.Unix(1_780_000_360, 0),
		Each: []metrics.PlanSeries{{Namespace: "shop", Name: "nightly", Missed: true, LastGood: time.Unix(1_780_000_300, 0), LastVerified: time.Unix(1_780_000_420, 0)}},
	}
	want["holdfast_plans ready"], want["holdfast_objectives_missed BackupPlan"], want["holdfast_plans_overdue"] = 7, 8, 9
	want["holdfast_plans_less_content"], want["holdfast_plan_verifications_missed"] = 10, 11
	want["holdfast_plan_oldest_verified_timestamp_seconds"] = 1_780_000_420
	want["holdfast_plan_last_verified_timestamp_seconds shop nightly"] = 1_780_000_420
	want["holdfast_plan_oldest_good_timestamp_seconds"] = 1_780_000_300
	want["holdfast_plan_retention_oldest_pending_timestamp_seconds"] = 1_780_000_360
	want["holdfast_plan_objective_missed shop nightly"], want["holdfast_plan_last_good_timestamp_seconds shop nightly"] = 1, 1_780_000_300
	want["holdfast_foundationdbbackup_oldest_restorable_timestamp_seconds"] = 1_780_000_180
	want["holdfast_foundationdbbackup_oldest_trouble_timestamp_seconds"] = 1_780_000_240
	assert.Equal(t, want, scraped())
}

func TestThoseThatWaitForATurnAreCountedByLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var waiting metrics.TurnsWaiting
		for _, age := range []time.Duration{time.Minute, time.Hour, time.Second} {
			waiting.Add(time.Now().Add(-age))
		}
		var ahead metrics.TurnsWaiting
		ahead.Add(time.Now().Add(time.Minute))
		registry := prometheus.NewRegistry()
		require.NoError(t, registry.Register(metrics.NewCensusCollector(func() *metrics.Census {
			return &metrics.Census{Turns: map[metrics.TurnLane]metrics.TurnsWaiting{
				{Pool: "backups", Name: "plan"}: waiting, {Pool: "backups", Name: "drill"}: {}, {Pool: "restores", Name: "by-hand"}: ahead,
			}}
		})))
		families, err := registry.Gather()
		require.NoError(t, err)
		found := map[string]float64{}
		for _, family := range families {
			for _, metric := range family.GetMetric() {
				if labels := metric.GetLabel(); len(labels) == 2 && labels[0].GetName() == "lane" && labels[1].GetName() == "pool" {
					found[family.GetName()+" "+labels[1].GetValue()+" "+labels[0].GetValue()] = metric.GetGauge().GetValue()
				}
			}
		}
		assert.Equal(t, map[string]float64{
			"holdfast_turns_waiting backups plan": 3, "holdfast_turn_oldest_waiting_seconds backups plan": 3600,
			"holdfast_turns_waiting backups drill": 0, "holdfast_turn_oldest_waiting_seconds backups drill": 0,
			"holdfast_turns_waiting restores by-hand": 1, "holdfast_turn_oldest_waiting_seconds restores by-hand": 0,
		}, found)
	})
}

// The alerts are written by docs/monitoring.md.
func TestTheDocumentationListsEveryInstrument(t *testing.T) {
	page, err := os.ReadFile("../../docs/monitoring.md")
	require.NoError(t, err)
	var listed []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(holdfast_[a-z_]+)`").FindAllStringSubmatch(string(page), -1) {
		listed = append(listed, row[1])
	}

	exposed := []string{"holdfast_resource_timeouts_total", "holdfast_restore_phase_seconds"} // Temporal's handler has them
	for name := range metricstest.Exposed(t) {
		if strings.HasPrefix(name, "holdfast_") {
			exposed = append(exposed, name)
		}
	}
	assert.ElementsMatch(t, exposed, listed)
}
