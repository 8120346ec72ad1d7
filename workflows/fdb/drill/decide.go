package drill

import (
	"cmp"
	"fmt"

	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/details"
)

type activity = contract.Activity[contract.FDBDrillStep, contract.FDBDrillView]

// These steps are done by FoundationDB's tools, whose results the run adds to the view.
var (
	stepSurvey = activity{Name: contract.SurveyFDBDrill.Name, Summary: contract.SurveyFDBDrill.Summary}
	stepCheck  = activity{Name: contract.CheckFDBDrill.Name, Summary: contract.CheckFDBDrill.Summary}
	stepClear  = activity{Name: contract.RunFDBCommand.Name, Summary: "Have the owner clear the target"}
)

// Settled reports whether nothing is left to do for a FoundationDBDrill until it is deleted. The watcher starts no workflow for a
// settled object, and a workflow ends when its object is settled.
func Settled(v contract.FDBDrillView) bool {
	return !v.Found || (!v.Held && (v.BeingDeleted || v.Ended))
}

// stays reports whether a drill still wants what the tools read for it.
func stays(v contract.FDBDrillView) bool { return v.Found && !v.BeingDeleted }

// next decides what a drill needs. What it has made goes as soon as the drill does, or has its verdict. The zero value waits.
func next(v contract.FDBDrillView) activity {
	switch {
	case v.BeingDeleted, v.Concluded:
		return cleanUp(v)
	case !v.Admitted:
		return contract.AdmitFDBDrill
	case v.Restore.Begun:
		return verify(v)
	case v.Version == 0:
		return stepSurvey
	case v.Late:
		return contract.ConcludeFDBDrill
	case !v.Reached:
		return activity{}
	}
	return contract.StartFDBDrillRestore
}

// verify follows the restore to the verdict.
func verify(v contract.FDBDrillView) activity {
	switch {
	case v.Restore.Exists && !v.Restore.Over && !v.Late:
		return activity{}
	case v.Restore.Exists && v.Restore.Completed && !v.Checked:
		return stepCheck
	}
	return contract.ConcludeFDBDrill
}

// cleanUp removes everything. A restore is aborted by the deletion of its object; only then may the target be cleared.
func cleanUp(v contract.FDBDrillView) activity {
	switch {
	case v.Restore.Exists && !v.Restore.Goes:
		return contract.RemoveFDBDrillRestore
	case v.Restore.Exists:
		return activity{}
	case !v.Restore.Begun, v.Cleared, v.Ended, v.Lost != "":
		return contract.EndFDBDrill
	case v.Owner == "", v.Uncleared != "":
		return activity{}
	}
	return stepClear
}

// awaited says in Markdown what a drill waits for, and who must act.
func awaited(v contract.FDBDrillView) string {
	restore := v.Restore
	switch {
	case restore.Exists && restore.Goes:
		return fmt.Sprintf("**%s:** waits for the end of FoundationDBRestore `%s`, which is being deleted.", v.Phase, restore.Name)
	case restore.Exists:
		return fmt.Sprintf("**%s:** waits for FoundationDBRestore `%s`, now %s, until %s at the latest. %s",
			v.Phase, restore.Name, details.OneLine(restore.State), details.Stamp(v.Deadline), details.OneLine(restore.Awaits))
	case v.Concluded || v.BeingDeleted:
		return fmt.Sprintf("**%s:** the target is to be cleared, and is not yet. %s", v.Phase,
			details.OneLine(cmp.Or(v.Uncleared, v.Unready, v.Why)))
	case v.Version != 0:
		return fmt.Sprintf("**%s:** waits until version %d of the database can be restored from the backup, until %s at the latest.",
			v.Phase, v.Version, details.Stamp(v.Deadline))
	}
	return "**" + v.Phase + "**"
}
