// Package restore decides for one NonAdminRestore: the next step by its view, when it is settled, and when the finalization
// runs as its child. The steps are activities of activities/restore.
//
// Package workflows registers Kind, and the watcher calls Settled.
package restore
