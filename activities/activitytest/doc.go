// Package activitytest is what the tests of several kinds' activities share: it runs an activity under its wire name over
// activities/fake, as a worker does, and makes the objects for such tests.
//
// Only tests import it.
package activitytest
