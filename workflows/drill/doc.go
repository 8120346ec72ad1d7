// Package drill decides for one RestoreDrill: the next step by its view, and when it is settled. Its workflow has the steps
// done by activities of activities/drill.
//
// Package workflows registers Kind, and the watcher calls Settled. It imports, of ours, only packages below workflows.
package drill
