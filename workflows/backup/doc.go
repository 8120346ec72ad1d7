// Package backup decides for one NonAdminBackup: the next step by its view, when it is settled, and when Velero is asked again
// to delete. The steps are run by entity.Course, at activities/backup.
//
// Package workflows registers Kind, and the watcher asks Settled. It imports, of ours, only packages below workflows and
// k8s/api.
package backup
