// Package policy reads what an administrator allows tenants to request, and keeps the last good policy in force.
//
// Packages below it judge tenants' specs by a Policy: backupspec, restorespec, locationspec and planspec, with check as their
// common part. The worker, the watcher and the activities read a Policy from a Source. It imports, of ours, check,
// quota, which judges one by numbers, and what a policy may say of plans: k8s/api and workflows/plan/due.
package policy
