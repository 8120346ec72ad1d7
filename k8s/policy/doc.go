// Package policy reads what an administrator allows tenants to request, and keeps the last good policy in force.
//
// Packages below it judge tenants' specs by a Policy: backupspec, restorespec, locationspec and planspec, with check as their
// common part; quota judges one by numbers. The worker, the watcher and the activities read a Policy by a Getter, which Source
// is.
package policy
