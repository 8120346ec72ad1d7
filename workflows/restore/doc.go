// Package restore decides for one NonAdminRestore: the next step by its view, when it is settled, and when the finalization is
// run as its child. The steps are run by entity.Course, at activities/restore.
//
// Package workflows registers Kind, and the watcher asks Settled. It imports, of ours, only packages below workflows and
// k8s/api.
package restore
