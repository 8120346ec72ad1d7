package planspec

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/k8s/policy"
)

type keep = holdfastv1alpha1.Keep

func TestAPlanIsForbiddenWithASentenceThatSaysWhatIsAllowed(t *testing.T) {
	daily := 24 * time.Hour
	for name, test := range map[string]struct {
		rules policy.Plans
		keep  *keep
		older []string
		want  string
	}{
		"no rules":         {},
		"often enough":     {rules: policy.Plans{MinInterval: metav1.Duration{Duration: daily}}},
		"too often":        {rules: policy.Plans{MinInterval: metav1.Duration{Duration: daily + 1}}, want: "the schedule makes runs 24h0m0s apart; the administrator allows 24h0m0.000000001s or more"},
		"the last allowed": {rules: policy.Plans{MaxPerNamespace: 2}, older: []string{"a"}},
		"one plan too many": {
			rules: policy.Plans{MaxPerNamespace: 2}, older: []string{"a", "b"},
			want: "the administrator allows 2 plans in a namespace, and there are 2 older ones: a, b",
		},
		"many plans too many": {
			rules: policy.Plans{MaxPerNamespace: 2}, older: []string{"a", "b", "c", "d", "e", "f"},
			want: "the administrator allows 2 plans in a namespace, and there are 6 older ones: a, b, c, d, e",
		},
		"nothing deleted": {
			rules: policy.Plans{MaxKept: 10}, keep: &keep{Daily: 7, DryRun: true},
			want: "keep.dryRun deletes nothing; the administrator bounds what a plan keeps",
		},
		"as many kept as allowed": {rules: policy.Plans{MaxKept: 10}, keep: &keep{Daily: 7}},
		"too many kept": {
			rules: policy.Plans{MaxKept: 10}, keep: &keep{Daily: 7, Last: 1},
			want: "keep names up to 11 backups; the administrator allows 10",
		},
		"minGood counts": {
			rules: policy.Plans{MaxKept: 10}, keep: &keep{MinGood: new(int32(11))},
			want: "keep names up to 11 backups; the administrator allows 10",
		},
		"no keep": {
			rules: policy.Plans{MaxKept: 10}, want: "keep is not set; the administrator allows a plan to keep 10 backups",
		},
		"no keep, but an enforced one": {rules: policy.Plans{MaxKept: 10, EnforceKeep: &keep{Last: 1}}},
		"the schedule enforced":        {rules: policy.Plans{EnforceSchedule: "0  2 * * *"}},
		"the same in other words":      {rules: policy.Plans{EnforceSchedule: "00 02 * * *"}},
		"another schedule":             {rules: policy.Plans{EnforceSchedule: "@weekly"}, want: `the administrator enforces schedule "@weekly"`},
		"another keep": {
			rules: policy.Plans{EnforceKeep: &keep{Daily: 3, Weekly: 4, Failed: new(int32(0))}}, keep: &keep{Daily: 7, Weekly: 4, Failed: new(int32(1))},
			want: "the administrator enforces keep.daily 3; the administrator enforces keep.failed 0",
		},
		"several problems": {
			rules: policy.Plans{MaxKept: 10, EnforceSchedule: "@weekly"},
			want:  `the administrator enforces schedule "@weekly"; keep is not set; the administrator allows a plan to keep 10 backups`,
		},
	} {
		spec := &holdfastv1alpha1.BackupPlanSpec{Schedule: "0 2 * * *", Keep: test.keep}
		got := Forbidden("nightly", spec, Context{Rules: policy.Own{Plans: test.rules}, Interval: daily, Older: test.older})
		assert.Equal(t, test.want, got, name)
	}
}

func TestWhatTheAdministratorEnforcesIsKept(t *testing.T) {
	enforced := policy.Plans{EnforceKeep: &keep{Daily: 3, MinGood: new(int32(2))}}
	assert.Nil(t, Keep(policy.Plans{}, nil))
	assert.Equal(t, &keep{Daily: 3, MinGood: new(int32(2))}, Keep(enforced, nil))
	own := &keep{Last: 5, MinGood: new(int32(1)), Failed: new(int32(3))}
	assert.Equal(t, &keep{Last: 5, Daily: 3, MinGood: new(int32(2)), Failed: new(int32(3))}, Keep(enforced, own))
	assert.Equal(t, &keep{Last: 5, MinGood: new(int32(1)), Failed: new(int32(3))}, own, "the object itself is not changed")
}

// A tenant can name a plan like a default one, and mark it as one; what counts is that it is one.
func TestTheRulesForTenantsDoNotApplyToDefaultPlans(t *testing.T) {
	given := holdfastv1alpha1.BackupPlanSpec{
		Schedule: "@hourly", Keep: &keep{Last: 100}, Drill: &holdfastv1alpha1.PlanDrill{Schedule: "@weekly"},
	}
	rules := policy.Own{
		Plans:        policy.Plans{MaxKept: 1},
		DefaultPlans: []policy.DefaultPlan{{Name: "nightly", NamespaceSelector: &metav1.LabelSelector{}, Spec: given}},
	}
	asStored := Defaulted(given)
	assert.Equal(t, &holdfastv1alpha1.PlanDrill{
		Schedule: "@weekly", Timeout: "30m", KeepOnFailure: "0s",
		Checks: holdfastv1alpha1.DrillChecks{Objects: new(true), WorkloadsReady: new(true)},
	}, asStored.Drill)
	assert.Empty(t, Forbidden("nightly", &asStored, Context{Rules: rules}))
	assert.NotEmpty(t, Forbidden("other", &asStored, Context{Rules: rules}))
	rules.Plans.MinInterval.Duration, rules.Drills.Enabled = time.Hour, true
	assert.Empty(t, ForbiddenDrills("nightly", &asStored, rules, time.Minute))
	assert.NotEmpty(t, ForbiddenDrills("other", &asStored, rules, time.Minute))
	asStored.Schedule = "* * * * *"
	assert.NotEmpty(t, Forbidden("nightly", &asStored, Context{Rules: rules}))
}

func TestDrillsAreForbiddenMoreOftenThanRuns(t *testing.T) {
	rules := policy.Own{
		Plans: policy.Plans{MinInterval: metav1.Duration{Duration: time.Hour}}, Drills: policy.Drills{Enabled: true},
	}
	spec := &holdfastv1alpha1.BackupPlanSpec{Schedule: "@daily", Drill: &holdfastv1alpha1.PlanDrill{Schedule: "*/30 * * * *"}}
	assert.Equal(t, "drill.schedule makes drills 30m0s apart; the administrator allows 1h0m0s or more",
		ForbiddenDrills("nightly", spec, rules, 30*time.Minute))
	assert.Empty(t, ForbiddenDrills("nightly", spec, rules, time.Hour))
	assert.Empty(t, ForbiddenDrills("nightly", spec, policy.Own{Drills: policy.Drills{Enabled: true}}, time.Minute))
}

// The API server stores a template in another form than the policy has it.
func TestADefaultPlanIsRecognizedByWhatItsTemplateSays(t *testing.T) {
	with := func(template string) holdfastv1alpha1.BackupPlanSpec {
		return holdfastv1alpha1.BackupPlanSpec{Schedule: "0 2 * * *", Drill: &holdfastv1alpha1.PlanDrill{
			Schedule: "0 3 * * 0",
			Checks:   holdfastv1alpha1.DrillChecks{Job: &holdfastv1alpha1.DrillJob{Template: runtime.RawExtension{Raw: []byte(template)}}},
		}}
	}
	rules := policy.Own{DefaultPlans: []policy.DefaultPlan{{Name: "nightly", Spec: with(`{"spec": {"containers": [{"name": "a", "image": "b"}]}}`)}}}
	same, other := with(`{"spec":{"containers":[{"image":"b","name":"a"}]}}`), with(`{"spec":{"containers":[{"image":"c","name":"a"}]}}`)
	assert.True(t, IsDefault(rules, "nightly", &same))
	assert.False(t, IsDefault(rules, "nightly", &other))
}
