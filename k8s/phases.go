package k8s

import (
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
)

// DownloadRequestFailed is a phase that Velero is to have after 1.18: status.message says why there is no URL (velero#10232).
const DownloadRequestFailed velerov1.DownloadRequestPhase = "Failed"

// The phases in which a canceled Backup or Restore is to be, after 1.18: velero#9284 spells them with two l, #10509 with one, as
// Velero does for volumes.

// Cancelling reports whether Velero is about to end a Backup or Restore in this phase at somebody's request.
func Cancelling[P ~string](phase P) bool { return phase == "Cancelling" || phase == "Canceling" }

// Cancelled reports whether Velero has ended a Backup or Restore in this phase at somebody's request. It is over for good.
func Cancelled[P ~string](phase P) bool { return phase == "Cancelled" || phase == "Canceled" }
