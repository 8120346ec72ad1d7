// Package drill decides for one FoundationDBDrill: the next step by its view, and when it is settled. Its workflow has the steps
// done by activities of activities/fdb/drill; the restore itself is a FoundationDBRestore with a workflow of its own, and the
// target is cleared by its owner.
//
// Package workflows registers Kind, and the watcher calls Settled.
package drill
