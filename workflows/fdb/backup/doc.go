// Package backup decides for one FoundationDBBackup, by its object, its database and its containers: the next step, the
// conditions, what the status keeps, when data are to be expired, and when a deleted object may be released.
//
// Package workflows registers Kind. Settled, Stopping and others are pure functions of the view, and the watcher, the activities
// of FoundationDB and starter call them, too.
package backup
