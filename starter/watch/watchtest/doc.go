// Package watchtest is what tests of the watcher's kinds share: a workqueue and workflows that record, a policy that a test
// writes, objects.
//
// Only tests import it.
package watchtest
