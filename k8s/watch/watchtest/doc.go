// Package watchtest is what tests of the watcher's kinds share: a workqueue and workflows that record, a policy that a test
// writes, objects.
//
// Only tests import it. It imports package watched, activities/backup and activities/restore, k8s and workflows/contract.
package watchtest
