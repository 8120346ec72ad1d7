package restore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/activities/fdb/restore"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

func incorrectly(reason string) []contract.FDBCondition {
	return []contract.FDBCondition{{Type: fdbv1alpha1.ConditionIncorrectRestoreState, Reason: reason, Message: "words"}}
}

func TestFindingsAreWrittenIntoTheStatus(t *testing.T) {
	object := &fdbv1alpha1.FoundationDBRestore{}
	began := time.Unix(1000, 0).UTC()
	restore.ApplyFindings(object, contract.FDBRestoreFindings{
		Generation: 3, State: "running", Percent: 40, BytesWritten: 5, Conditions: incorrectly(fdbv1alpha1.ReasonRestoring),
	}, began)
	assert.EqualValues(t, 3, object.Status.ObservedGeneration)
	assert.Equal(t, &fdbv1alpha1.RestoreProgress{PercentDone: 40, BytesWritten: 5}, object.Status.Progress)
	assert.True(t, object.Status.Conditions[0].LastTransitionTime.Time.Equal(began))

	restore.ApplyFindings(object, contract.FDBRestoreFindings{
		Generation: 3, State: "finalizing", Percent: 100, Conditions: incorrectly(fdbv1alpha1.ReasonRestoring),
		Tasks: []contract.RecordedTask{{Name: "a", Phase: "InProgress"}, {Name: "b", Phase: "InProgress"}},
	}, began.Add(time.Minute))
	assert.True(t, object.Status.Conditions[0].LastTransitionTime.Time.Equal(began), "the same reason holds since then")
	assert.Len(t, object.Status.Finalization, 2)

	restore.ApplyFindings(object, contract.FDBRestoreFindings{
		Generation: 3, State: "completed", Percent: 100, Restored: 7,
		Tasks: []contract.RecordedTask{{Name: "a", Phase: "Completed"}, {Name: "b", Phase: "Failed", Errors: []string{"e"}}},
	}, began.Add(time.Hour))
	assert.Empty(t, fdbv1alpha1.Unmet(object.Status.Conditions))
	assert.Equal(t, fdbv1alpha1.RestoreCompleted, object.Status.State)
	assert.Equal(t, []metav1.Condition{{
		Type: fdbv1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Completed", ObservedGeneration: 3,
		LastTransitionTime: metav1.NewTime(began.Add(time.Hour)), Message: "version 7 is restored and verified",
	}}, object.Status.Conditions)
	assert.EqualValues(t, 7, object.Status.RestoredVersion)
	assert.Equal(t, []fdbv1alpha1.RestoreTask{
		{Name: "a", Phase: "Completed"}, {Name: "b", Phase: "Failed", Errors: []string{"e"}},
	}, object.Status.Finalization)

	ended := object.Status.DeepCopy()
	restore.ApplyFindings(object, contract.FDBRestoreFindings{Generation: 3, State: "running", Percent: 50}, began)
	assert.Equal(t, *ended, object.Status, "late findings change nothing")
}

// No condition says that a restore was stopped before its start, and yet it is not Ready: Ready means restored data.
func TestARestoreThatWasNeverStartedIsNotReady(t *testing.T) {
	object := &fdbv1alpha1.FoundationDBRestore{}
	restore.ApplyFindings(object, contract.FDBRestoreFindings{Generation: 2, State: "aborted"}, time.Unix(1000, 0))
	require.Len(t, object.Status.Conditions, 1)
	ready := object.Status.Conditions[0]
	assert.Equal(t, fdbv1alpha1.ConditionReady, ready.Type)
	assert.Equal(t, metav1.ConditionFalse, ready.Status)
	assert.Equal(t, fdbv1alpha1.ReasonAborted, ready.Reason)
}

func TestPlanIsWrittenOnce(t *testing.T) {
	g := newGathered()
	plan := contract.FDBRestorePlan{Tag: "back-up-0a1b2c3d", URL: newer, Version: 7, Time: 1000, Destination: "copy:1"}
	planning := contract.FDBRestorePlanning{Ref: g.ref(), Generation: 2, Plan: plan}
	assert.True(t, g.gather(t).PlanDue(planning))
	for title, change := range map[string]func(*contract.FDBRestorePlanning, *gathered){
		"another generation": func(p *contract.FDBRestorePlanning, _ *gathered) { p.Generation = 1 },
		"another tag":        func(p *contract.FDBRestorePlanning, _ *gathered) { p.Plan.Tag = "t" },
		"another container":  func(p *contract.FDBRestorePlanning, _ *gathered) { p.Plan.URL = older },
		"another database":   func(p *contract.FDBRestorePlanning, _ *gathered) { p.Plan.Destination = "copy:2" },
		"no version":         func(p *contract.FDBRestorePlanning, _ *gathered) { p.Plan.Version = 0 },
		"stopped": func(_ *contract.FDBRestorePlanning, g *gathered) {
			g.restore.Spec.RestoreState = fdbv1alpha1.RestoreStateStopped
		},
		"planned": func(_ *contract.FDBRestorePlanning, g *gathered) {
			g.restore.Status.Plan = &fdbv1alpha1.RestorePlan{Tag: plan.Tag, URL: newer}
		},
		"being deleted": func(_ *contract.FDBRestorePlanning, g *gathered) {
			g.restore.DeletionTimestamp, g.restore.Finalizers = new(metav1.Now()), []string{fdbv1alpha1.FinalizerAbort}
		},
	} {
		t.Run(title, func(t *testing.T) {
			p, g := planning, newGathered()
			change(&p, g)
			assert.False(t, g.gather(t).PlanDue(p))
		})
	}
	restore.ApplyPlan(g.restore, plan)
	restore.ApplyPlan(g.restore, contract.FDBRestorePlan{Tag: "other"})
	require.NotNil(t, g.restore.Status.Plan)
	assert.Equal(t, &plan, func() *contract.FDBRestorePlan {
		p := *g.gather(t).View().Plan
		p.Container = ""
		return &p
	}())
}

func TestEventsOfARestore(t *testing.T) {
	plan := &fdbv1alpha1.RestorePlan{Version: 7, URL: older}
	condition := func(reason string) []metav1.Condition {
		return []metav1.Condition{{Type: fdbv1alpha1.ConditionIncorrectRestoreState, Reason: reason}}
	}
	type status = fdbv1alpha1.FoundationDBRestoreStatus
	for title, tt := range map[string]struct {
		before, after status
		want          []string // "Warning reason" or "Normal reason"
	}{
		"nothing new": {status{State: "Running", Plan: plan}, status{State: "Running", Plan: plan}, nil},
		"it is started": {
			status{State: "Pending", Plan: plan},
			status{State: "Queued", Plan: plan, Conditions: condition(fdbv1alpha1.ReasonRestoring)},
			[]string{"Normal Restoring", "Normal RestoreStarted"},
		},
		"it goes on": {status{State: "Queued", Plan: plan}, status{State: "Running", Plan: plan}, nil},
		"no progress": {
			status{State: "Running", Plan: plan, Conditions: condition(fdbv1alpha1.ReasonRestoring)},
			status{State: "Running", Plan: plan, Conditions: condition(fdbv1alpha1.ReasonNoProgress)},
			[]string{"Warning NoProgress"},
		},
		"completed":                {status{State: "Finalizing"}, status{State: "Completed"}, []string{"Normal RestoreCompleted"}},
		"aborted":                  {status{State: "Running"}, status{State: "Aborted"}, []string{"Warning RestoreAborted"}},
		"aborted before its start": {status{State: "Pending"}, status{State: "Aborted"}, []string{"Normal RestoreAborted"}},
		"failed":                   {status{State: "Finalizing"}, status{State: "Failed"}, []string{"Warning RestoreFailed"}},
	} {
		t.Run(title, func(t *testing.T) {
			var events []string
			for _, event := range restore.StatusEvents(tt.before, tt.after) {
				kind := "Normal "
				if event.Warning {
					kind = "Warning "
				}
				events = append(events, kind+event.Reason)
			}
			assert.Equal(t, tt.want, events)
		})
	}
}
