// Package failpoint is only in the outage build of Holdfast's processes (build tag outage): before and after each activity, and
// each signal of the watcher, the process reports to the test that started it, and waits until the test lets it continue. A
// test that kills a process there knows exactly which steps were done.
//
// Only files of that build tag and test/outage import it.
package failpoint
