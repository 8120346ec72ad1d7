// Package gather reads one RestoreDrill and what was made for it, and reduces that to a view.
//
// Activities and the watcher use it. It imports nothing that opens an object store.
package gather
