package drill

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"holdfast.dev/holdfast/workflows/contract"
)

type view = contract.FDBDrillView

// What next says for a drill that waits, and what stands for a drill that is settled, about which it is not asked.
var wait, settled = activity{}, activity{Name: "settled"}

// held is a drill of which something may be left, changed by the test.
func held(change func(*view)) view {
	v := view{Found: true, Held: true, Admitted: true, Version: 700, Reached: true, Owner: "copy:1", Target: "copy:1"}
	change(&v)
	return v
}

func TestADrillGoesThroughItsSteps(t *testing.T) {
	atWork := contract.FDBDrillRestoreView{Begun: true, Exists: true, State: "running"}
	restored := contract.FDBDrillRestoreView{Begun: true, Exists: true, State: "completed", Over: true, Completed: true}
	failed := contract.FDBDrillRestoreView{Begun: true, Exists: true, State: "failed", Over: true}
	gone := contract.FDBDrillRestoreView{Begun: true}
	for title, test := range map[string]struct {
		view view
		want activity
	}{
		"a new one":                   {view{Found: true}, contract.AdmitFDBDrill},
		"refused":                     {held(func(v *view) { v.Concluded, v.Version = true, 0 }), contract.EndFDBDrill},
		"refused and over":            {view{Found: true, Concluded: true, Ended: true}, settled},
		"admitted":                    {held(func(v *view) { v.Version, v.Reached = 0, false }), stepSurvey},
		"admitted, and late":          {held(func(v *view) { v.Version, v.Reached, v.Late = 0, false, true }), stepSurvey},
		"the backup lags":             {held(func(v *view) { v.Reached = false }), wait},
		"the backup lags for long":    {held(func(v *view) { v.Reached, v.Late = false, true }), contract.ConcludeFDBDrill},
		"the backup holds it":         {held(func(*view) {}), contract.StartFDBDrillRestore},
		"killed before it says so":    {held(func(v *view) { v.Restore.Exists = true }), contract.StartFDBDrillRestore},
		"it restores":                 {held(func(v *view) { v.Restore = atWork }), wait},
		"it restores for too long":    {held(func(v *view) { v.Restore, v.Late = atWork, true }), contract.ConcludeFDBDrill},
		"it is restored":              {held(func(v *view) { v.Restore = restored }), stepCheck},
		"it is restored, late":        {held(func(v *view) { v.Restore, v.Late = restored, true }), stepCheck},
		"it is checked":               {held(func(v *view) { v.Restore, v.Checked = restored, true }), contract.ConcludeFDBDrill},
		"the restore failed":          {held(func(v *view) { v.Restore = failed }), contract.ConcludeFDBDrill},
		"the restore was deleted":     {held(func(v *view) { v.Restore = gone }), contract.ConcludeFDBDrill},
		"it has its verdict":          {held(func(v *view) { v.Restore, v.Concluded = restored, true }), contract.RemoveFDBDrillRestore},
		"its restore goes":            {held(func(v *view) { v.Restore, v.Concluded, v.Restore.Goes = restored, true, true }), wait},
		"its restore is gone":         {held(func(v *view) { v.Restore, v.Concluded = gone, true }), stepClear},
		"nobody reaches the target":   {held(func(v *view) { v.Restore, v.Concluded, v.Owner = gone, true, "" }), wait},
		"the target is taken away":    {held(func(v *view) { v.Restore, v.Concluded, v.Lost = gone, true, "no label" }), contract.EndFDBDrill},
		"the target is empty":         {held(func(v *view) { v.Restore, v.Concluded, v.Cleared = gone, true, true }), contract.EndFDBDrill},
		"nothing was restored":        {held(func(v *view) { v.Concluded = true }), contract.EndFDBDrill},
		"it is over":                  {view{Found: true, Admitted: true, Concluded: true, Ended: true, Restore: gone}, settled},
		"over, and killed then":       {held(func(v *view) { v.Restore, v.Concluded, v.Cleared, v.Ended = gone, true, true, true }), contract.EndFDBDrill},
		"deleted before it began":     {view{Found: true, BeingDeleted: true}, settled},
		"deleted before it restores":  {held(func(v *view) { v.BeingDeleted = true }), contract.EndFDBDrill},
		"deleted while it restores":   {held(func(v *view) { v.BeingDeleted, v.Restore = true, atWork }), contract.RemoveFDBDrillRestore},
		"deleted, and not known of":   {held(func(v *view) { v.BeingDeleted, v.Restore.Exists = true, true }), contract.RemoveFDBDrillRestore},
		"deleted, its restore is off": {held(func(v *view) { v.BeingDeleted, v.Restore = true, gone }), stepClear},
		"it is gone":                  {view{}, settled},
	} {
		t.Run(title, func(t *testing.T) {
			assert.Equal(t, test.want == settled, Settled(test.view))
			if test.want != settled {
				assert.Equal(t, test.want, next(test.view))
			}
			if test.want == wait {
				assert.NotEmpty(t, awaited(test.view))
			}
		})
	}
}

// The target may be cleared only when nothing restores into it any more.
func TestNoTargetIsClearedWhileItsRestoreExists(t *testing.T) {
	for _, deleted := range []bool{false, true} {
		for _, goes := range []bool{false, true} {
			v := held(func(v *view) {
				v.Concluded, v.BeingDeleted = !deleted, deleted
				v.Restore = contract.FDBDrillRestoreView{Begun: true, Exists: true, Goes: goes}
			})
			assert.NotEqual(t, stepClear, next(v))
			assert.NotEqual(t, contract.EndFDBDrill, next(v))
		}
	}
}
