// Package fake is a cluster in memory for the tests that need no real one: the API server's objects with status subresources
// and optimistic locking, and the activities over it. What Velero would do, the test does.
//
// Only tests import it.
package fake
