// Package restore decides for one FoundationDBRestore: the next step, the condition, what the status keeps, and when a deleted
// object may be released. A restore is started once, and everything that is wrong is found out before.
//
// Package workflows registers Kind. Settled and Stopping are pure functions of the view, and the watcher calls them, too.
package restore
