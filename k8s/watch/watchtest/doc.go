// Package watchtest is what tests of the watcher's kinds share: a workqueue and workflows that record, a policy that a test
// writes, objects.
//
// It is called by tests alone. It imports package watched and, of k8s, what makes the objects of tests.
package watchtest
