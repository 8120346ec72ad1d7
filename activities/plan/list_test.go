package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

func TestAScheduleAgreesWithItsPlan(t *testing.T) {
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	in := func(d time.Duration) *metav1.Time { at := metav1.NewTime(now.Add(d)); return &at }
	scheduled := Listed{Workflow: contract.KindPlanStart.Workflow, Note: noteActive, Next: now.Add(time.Hour)}
	paused := func(note string) Listed { l := scheduled; l.Paused, l.Note = true, note; return l }
	for name, test := range map[string]struct {
		listed Listed
		plan   holdfastv1alpha1.BackupPlan
		agrees bool
	}{
		"the same next run": {scheduled, planOf(false, "", in(time.Hour)), true},
		"another next run":  {scheduled, planOf(false, "", in(2*time.Hour)), false},
		"another workflow":  {Listed{Workflow: "Other", Next: now.Add(time.Hour)}, planOf(false, "", in(time.Hour)), false},
		"an older entry": {
			Listed{Workflow: contract.KindPlanStart.Workflow, Next: now.Add(-time.Minute)}, planOf(false, "", in(time.Hour)), true,
		},
		"about to begin":              {scheduled, planOf(false, "", in(time.Second)), true},
		"paused by an operator":       {paused("maintenance"), planOf(false, "", in(time.Hour)), false},
		"known to be":                 {paused("maintenance"), planOf(false, holdfastv1alpha1.PausedByOperator, nil), true},
		"resumed by an operator":      {scheduled, planOf(false, holdfastv1alpha1.PausedByOperator, nil), false},
		"paused by the spec":          {paused(notePaused), planOf(true, holdfastv1alpha1.PausedBySpec, nil), true},
		"resumed despite the spec":    {scheduled, planOf(true, holdfastv1alpha1.PausedBySpec, nil), false},
		"paused by both":              {paused("maintenance"), planOf(true, holdfastv1alpha1.PausedByBoth, nil), true},
		"paused, as it is not ready":  {paused(noteRefused), planOf(false, "", nil), true},
		"not ready any more, but not": {scheduled, planOf(false, "", nil), false},
	} {
		assert.Equal(t, test.agrees, test.listed.Agrees(&test.plan, now), name)
	}
}

func planOf(pausedInSpec bool, paused holdfastv1alpha1.PausedBy, next *metav1.Time) holdfastv1alpha1.BackupPlan {
	return holdfastv1alpha1.BackupPlan{
		Spec:   holdfastv1alpha1.BackupPlanSpec{Paused: pausedInSpec},
		Status: holdfastv1alpha1.BackupPlanStatus{Paused: paused, NextRun: next},
	}
}
