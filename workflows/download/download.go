package download

import (
	"fmt"

	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/entity"
	"holdfast.dev/holdfast/workflows/kinds"
	"holdfast.dev/holdfast/workflows/stall"
)

// Kind is how the workflow is run. It serves one NonAdminDownloadRequest from its creation, or any later event, until it is
// settled; the next event, or its expiration, starts it again under the same ID. It is the only writer of the object's status.
var Kind = kinds.Of(entity.Kind[*contract.ObjectInput, contract.ObjectStep, contract.DownloadView]{
	Kind: contract.KindDownload, Read: contract.RefreshDownload,
	Activities: contract.Names(contract.RequestDownload, contract.RemoveDownload),
	Args:       (*contract.ObjectInput).Step,
	Settled:    Settled, Next: next, Awaited: awaited,
	Phases: func(v contract.DownloadView) (string, string) { return v.Phase, v.Velero.Phase },
	Reread: stall.MaxRereadInterval,
	Waits: contract.DownloadView{
		Found: true, Validated: true, Velero: contract.VeleroDownloadView{Exists: true, Name: "d", Current: true},
	},
})

type activity = contract.Activity[contract.ObjectStep, contract.DownloadView]

// wait: nothing is due.
var wait activity

// next decides what a download request needs: an expired one is deleted, one without a verdict gets it, together
// with the request to Velero if the file may be downloaded.
func next(v contract.DownloadView) activity {
	switch {
	case !v.Found, v.BeingDeleted, v.Expired:
		return contract.RemoveDownload
	case !v.Validated, v.Refused, !v.Velero.Exists, !v.Velero.Current:
		return contract.RequestDownload
	case v.Velero.Signed:
		return contract.RefreshDownload
	}
	return wait // for Velero
}

// awaited says in Markdown what a request waits for, and who must act.
func awaited(v contract.DownloadView) string {
	return fmt.Sprintf("**Requested:** waits for Velero to answer DownloadRequest `%s` with a signed URL.", v.Velero.Name)
}

// Settled reports whether nothing is left to do for a NonAdminDownloadRequest until somebody changes it, what its verdict
// depends on changes, or it expires. The watcher starts no workflow for a settled object, and a workflow ends when its object
// is settled.
func Settled(v contract.DownloadView) bool {
	switch {
	case !v.Found, v.BeingDeleted:
		return !v.Velero.Exists
	case v.Expired:
		return false
	case v.Answered:
		return true
	}
	return v.Refused && !v.Velero.Exists
}
