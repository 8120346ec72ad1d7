// Package policy reads what an administrator allows tenants to ask for, and keeps the last good policy in force.
//
// Packages below it judge tenants' specs by a Policy: backupspec, restorespec and locationspec, with what they share in check.
// The worker, the watcher and the activities read a Policy from a Source. It imports, of ours, only check.
package policy
