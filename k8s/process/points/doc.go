// Package points is what the outage build of Holdfast's processes (build tag outage) holds that the product does not: before
// and after each activity, and each signal of the watcher, the process reports to the test that started it and goes on when
// the test lets it. A test that kills a process there knows exactly how far it had come.
//
// Only files of that build tag and test/outage import it. It imports, of ours, workflows/contract.
package points
