package policy

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestThePolicyOfPlansIsRead(t *testing.T) {
	p, err := ParseOwn([]byte(`
plans: {minInterval: 1h, maxPerNamespace: 3, maxKept: 40, enforceSchedule: "@daily", enforceKeep: {daily: 7, minGood: 2}}
defaultPlans:
- name: nightly
  namespaceSelector: {matchLabels: {tier: gold}}
  spec: {schedule: "0 2 * * *", timeZone: Europe/Berlin, template: {spec: {backupSpec: {snapshotVolumes: false}}}, keep: {daily: 7}}
`))
	require.NoError(t, err)
	assert.Equal(t, time.Hour, p.Plans.MinInterval.Duration)
	assert.Equal(t, 3, p.Plans.MaxPerNamespace)
	assert.Equal(t, 40, p.Plans.MaxKept)
	assert.Equal(t, "@daily", p.Plans.EnforceSchedule)
	assert.Equal(t, int32(7), p.Plans.EnforceKeep.Daily)
	require.Len(t, p.DefaultPlans, 1)
	plan := p.DefaultPlans[0]
	assert.False(t, *plan.Spec.Template.Spec.BackupSpec.SnapshotVolumes)
	assert.True(t, plan.Selects(map[string]string{"tier": "gold", "team": "a"}))
	assert.False(t, plan.Selects(nil))
}

func TestThePolicyOfPlansIsReadStrictly(t *testing.T) {
	const good = `schedule: "@daily", template: {spec: {backupSpec: {}}}`
	for document, want := range map[string]string{
		"plans: {maxKeep: 3}":                                    "plans.maxKeep is not a known field",
		"plans: {minInterval: -1h}":                              "plans.minInterval must not be negative",
		"plans: {maxKept: -1, minInterval: -1h}":                 "plans.minInterval must not be negative; plans.maxKept must not be negative",
		"plans: {maxKept: many}":                                 "plans.maxKept must be of type int",
		"plans: {enforceSchedule: daily}":                        `plans.enforceSchedule: schedule "daily": must be five fields`,
		"plans: {enforceKeep: {minGood: 0, daily: -1}}":          "plans.enforceKeep.daily must be between 0 and 1000; plans.enforceKeep.minGood must be between 1 and 100",
		"plans: {enforceKeep: {dryRun: true}}":                   "plans.enforceKeep.dryRun cannot be enforced",
		"plans: {enforceKeep: {dayly: 7}}":                       "plans.enforceKeep.dayly is not a known field",
		"defaultPlans: {}":                                       "defaultPlans must be a list",
		"defaultPlans: [{spec: {" + good + "}}]":                 `defaultPlans[0].name ""`,
		"defaultPlans: [{name: a, spec: {" + good + "}}]":        "defaultPlans[0].namespaceSelector must be set: {} selects all namespaces",
		"defaultPlans: [{name: a, namespaceSelector: {}, s: {}}": "did not find expected",
		"defaultPlans: [{name: a, namespaceSelector: {}, spec: {" + good + "}}, {name: a, namespaceSelector: {}, spec: {" + good + "}}]": `defaultPlans[1].name: "a" is used twice`,
		`defaultPlans: [{name: a, namespaceSelector: {}, spec: {schedule: "61 * * * *", template: {spec: {backupSpec: {}}}}}]`:           `defaultPlans[0].spec: schedule "61 * * * *"`,
		`defaultPlans: [{name: a, namespaceSelector: {}, spec: {schedule: "@daily"}}]`:                                                   "backupSpec must be set",
		`defaultPlans: [{name: a, namespaceSelector: {}, spec: {schedule: "@daily", template: {spec: {backupSpec: {tll: 1h}}}}}]`:        "backupSpec.tll is not a known field",
		`defaultPlans: [{name: a, namespaceSelector: {}, spec: {schedul: "@daily", template: {spec: {backupSpec: {}}}}}]`:                "defaultPlans[0].spec.schedul is not a known field",
		`defaultPlans: [{name: a, namespaceSelector: {matchExpressions: [{key: a, operator: Is}]}, spec: {` + good + `}}]`:               `"Is" is not a valid label selector operator`,
	} {
		_, err := ParseOwn([]byte(document))
		assert.ErrorContains(t, err, want, document)
	}
}
