package drill

import (
	"fmt"
	"time"

	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/details"
)

type activity = contract.Activity[contract.DrillStep, contract.DrillView]

// The steps on the namespace are activities of another worker, with another input: the run makes a view of their result.
var (
	stepPrepare         = namespaceStep(contract.PrepareDrillNamespace)
	stepRemoveNamespace = namespaceStep(contract.RemoveDrillNamespace)
)

func namespaceStep(of contract.Activity[contract.DrillNamespace, contract.DrillNamespaceView]) activity {
	return activity(of)
}

// Settled reports whether nothing is left to do for a RestoreDrill until it is deleted, or something of it comes back. The
// watcher starts no workflow for a settled object, and a workflow ends when its object is settled.
func Settled(v contract.DrillView) bool {
	return !leaves(v) && (!v.Found || v.BeingDeleted || v.Ended || v.Unwritable)
}

// leaves reports whether something exists that was made for the drill.
func leaves(v contract.DrillView) bool { return v.NamespaceExists || v.Velero.Exists }

// next decides what a drill needs: what was made for it goes as soon as the drill does, or has its verdict. The zero value waits.
func next(v contract.DrillView) activity {
	switch {
	case !v.Found, v.BeingDeleted, v.Ended, v.Concluded && !v.Kept:
		return cleanUp(v)
	case v.Concluded:
		return activity{}
	case v.Oversized && leaves(v):
		return cleanUp(v)
	case v.Oversized:
		return contract.ConcludeDrill
	case !v.Admitted:
		return contract.AdmitDrill
	case v.Velero.Begun:
		return verify(v)
	case v.Occupied:
		return contract.ConcludeDrill
	case v.Velero.Exists:
		return contract.StartDrillRestore // it was made before the status said so
	case v.Late:
		return contract.ConcludeDrill
	case v.Full, v.Unserved, v.NamespaceTerminating, v.Ahead > 0 && !v.NamespaceExists:
		return activity{}
	case !v.Prepared, !v.NamespaceExists:
		return stepPrepare
	case v.AwaitsTurn && v.StartTried:
		return activity{}
	}
	return contract.StartDrillRestore
}

// verify follows the Velero Restore to the verdict.
func verify(v contract.DrillView) activity {
	switch {
	case v.Velero.Exists && !v.Velero.Finished && !v.Late:
		return activity{}
	case v.Velero.Exists && v.Velero.Restored && v.Check != "" && !v.GivenUp:
		return contract.CheckDrill
	}
	return contract.ConcludeDrill
}

// cleanUp removes everything. The namespace stays while Velero restores into it: Velero makes a namespace that is missing,
// with the labels that the archive has for it.
func cleanUp(v contract.DrillView) activity {
	switch {
	case v.Velero.Exists && !v.Velero.Finished && !v.Velero.BeingDeleted, v.NamespaceTerminating, v.NamespaceExists && v.Unserved:
		return activity{}
	case v.NamespaceExists:
		return stepRemoveNamespace
	case v.Velero.BeingDeleted:
		return activity{}
	case v.Velero.Exists:
		return contract.RemoveDrillRestore
	}
	return contract.EndDrill
}

// awaited says in Markdown what a drill waits for, and who must act.
func awaited(v contract.DrillView) string {
	switch {
	case v.Velero.Exists && !v.Velero.Finished:
		text := fmt.Sprintf("**%s:** waits for Velero to finish Restore `%s`, now in phase `%s`.",
			v.Phase, v.Velero.Name, details.OrUnknown(details.OneLine(v.Velero.Phase)))
		if v.Concluded || !v.Found || v.BeingDeleted {
			return text + " Then everything of the drill is deleted."
		}
		return text + " Until " + clock(v.Deadline) + " at the latest."
	case v.NamespaceTerminating:
		return fmt.Sprintf("**%s:** waits for Kubernetes to delete Namespace `%s` with everything in it.", v.Phase, v.Namespace.Name)
	case v.Velero.BeingDeleted:
		return fmt.Sprintf("**%s:** waits for Velero to delete Restore `%s`.", v.Phase, v.Velero.Name)
	case v.Kept:
		return fmt.Sprintf("**Kept:** Namespace `%s` stays until %s for an inspection. The drill's status has the findings.",
			v.Namespace.Name, clock(v.KeptUntil))
	case v.Unserved:
		return fmt.Sprintf("**%s:** no worker makes or deletes Namespace `%s`. An operator has to check that a `holdfast-worker "+
			"--serve=drills` runs; the history of this workflow has its last error.", v.Phase, v.Namespace.Name)
	case v.AwaitsTurn:
		return "**Waiting** for its turn before Velero: restores of tenants go first. `holdfast queue` shows who has one."
	case v.Ahead > 0:
		return fmt.Sprintf("**Waiting** for RestoreDrill `%s`: one drill of a namespace runs at a time. Older ones: %d.",
			v.Oldest, v.Ahead)
	case v.Full:
		return fmt.Sprintf("**Waiting:** there are as many namespaces of drills as the policy's `drills.maxActive` allows (%d), "+
			"or another drill of this namespace has one. `holdfast list drills` shows them.", v.Namespace.MaxActive)
	}
	return "**" + v.Phase + "**"
}

func clock(unix int64) string { return time.Unix(unix, 0).UTC().Format(time.RFC3339) }
