package plan

import (
	"fmt"

	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/details"
)

// Settled reports whether the plan is gone: its workflow is open as long as it exists.
func Settled(v contract.PlanView) bool { return !v.Found }

// next decides what a plan needs: a run comes first, so that it is not late, and deletion last.
func next(v contract.PlanView) activity {
	switch {
	case v.Ready && (v.Due != 0 || v.RunNow):
		return contract.RunPlan
	case v.Ready && v.DrillDue != 0:
		return contract.MakePlanDrill
	case v.Extend != "":
		return contract.ExtendPlanBackup
	case v.Delete != "":
		return contract.DeletePlanBackup
	case v.DeleteDrill != "":
		return contract.DeletePlanDrill
	}
	return activity{}
}

// awaited says in Markdown what a plan waits for, and who must act.
func awaited(v contract.PlanView) string {
	switch {
	case !v.Ready:
		return fmt.Sprintf("**Not ready:** `%s`. The tenant must change the plan.", details.OneLine(v.Why))
	case v.Paused != "":
		return fmt.Sprintf("**Paused** by %s. %s", v.Paused, have(v))
	}
	return fmt.Sprintf("**Next run:** %s. %s", details.Stamp(v.NextRun), have(v))
}

func have(v contract.PlanView) string {
	text := fmt.Sprintf("Stored: %d backups.", v.Stored)
	if v.LastGood != 0 {
		text += fmt.Sprintf(" Newest good backup: %s.", details.Stamp(v.LastGood))
	}
	if v.LastVerified != 0 {
		text += fmt.Sprintf(" Newest verified backup: %s.", details.Stamp(v.LastVerified))
	}
	if v.Objective != "" {
		text += fmt.Sprintf(" Objective: %s.", v.Objective)
	}
	return text
}
