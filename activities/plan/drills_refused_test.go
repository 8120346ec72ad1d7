package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"holdfast.dev/holdfast/activities/fake"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

// What is wrong with its drills is on the plan as soon as it is judged, and its backups go on.
func TestDrillsThatAreRefusedDoNotStopTheBackups(t *testing.T) {
	job := func(template string) holdfastv1alpha1.DrillChecks {
		return holdfastv1alpha1.DrillChecks{Job: &holdfastv1alpha1.DrillJob{Template: runtime.RawExtension{Raw: []byte(template)}}}
	}
	for title, test := range map[string]struct {
		drill         holdfastv1alpha1.PlanDrill
		least         time.Duration
		off           bool
		reason, wants string
	}{
		"a schedule without a time": {
			drill: holdfastv1alpha1.PlanDrill{Schedule: "0 0 30 2 *"}, reason: "True InvalidDrill", wants: `no drills are made: drill: schedule "0 0 30 2 *"`,
		},
		"a template without containers": {
			drill:  holdfastv1alpha1.PlanDrill{Schedule: "*/5 * * * *", Checks: job(`{"spec":{}}`)},
			reason: "True InvalidDrill", wants: "drill: checks.job.template cannot be used: it has no spec.containers; runs are made",
		},
		"a template with a field that there is not": {
			drill:  holdfastv1alpha1.PlanDrill{Schedule: "*/5 * * * *", Checks: job(`{"spec":{"container":[]}}`)},
			reason: "True InvalidDrill", wants: `unknown field "container"`,
		},
		"drills are off": {
			drill: holdfastv1alpha1.PlanDrill{Schedule: "*/5 * * * *"}, off: true,
			reason: "True DrillForbiddenByPolicy", wants: "the administrator allows no drills (drills.enabled)",
		},
		"longer than the administrator allows": {
			drill:  holdfastv1alpha1.PlanDrill{Schedule: "*/5 * * * *", Timeout: "25h"},
			reason: "True DrillForbiddenByPolicy", wants: "drill.timeout is 25h; the administrator allows ",
		},
		"more often than the administrator allows": {
			drill: holdfastv1alpha1.PlanDrill{Schedule: "*/5 * * * *"}, least: time.Hour,
			reason: "True DrillForbiddenByPolicy", wants: "drill.schedule makes drills 5m0s apart; the administrator allows 1h0m0s or more",
		},
	} {
		s := newScene(t, func(p *holdfastv1alpha1.BackupPlan) { p.Spec.Schedule, p.Spec.Drill = "1 * * * *", &test.drill })
		s.Policy.Plans.MinInterval.Duration, s.Policy.Drills.Enabled = test.least, !test.off
		s.refresh()
		assert.Equal(t, test.reason, s.reason("Ready"), title)
		assert.Contains(t, meta.FindStatusCondition(s.status().Conditions, "Ready").Message, test.wants, title)
		assert.Contains(t, s.events(), "Warning "+strings.Fields(test.reason)[1], title)
		s.now = fake.PlanTime.Add(time.Minute)
		s.ends(s.run(), velerov1.BackupPhaseCompleted)
		s.at(5)
		assert.Zero(t, s.refresh().DrillDue, title)
		assert.Nil(t, s.status().Drills.Next, title)
		assert.Zero(t, s.status().Drills.Missed, title)
	}
}

// What was due while the plan made no drills is not missed.
func TestDrillsThatAreAllowedAgainAreDueFromThenOn(t *testing.T) {
	s, _ := newDrilled(t, nil)
	s.Policy.Plans.MinInterval.Duration = time.Hour
	s.refresh()
	assert.Equal(t, "True DrillForbiddenByPolicy", s.reason("Ready"))
	s.now = s.now.Add(3 * time.Hour)
	s.ends(s.run(), velerov1.BackupPhaseCompleted)
	s.Policy.Plans.MinInterval.Duration = 0
	view := s.refresh()
	require.NotZero(t, view.DrillDue, "the newest within the starting deadline")
	s.act(contract.MakePlanDrill.Name, contract.PlanStep{})
	assert.Equal(t, "True Scheduled", s.reason("Ready"))
	drills := s.status().Drills
	assert.Equal(t, int64(1), drills.Made)
	assert.LessOrEqual(t, drills.Missed, int64(11), "those of the last hour, of three")
}
