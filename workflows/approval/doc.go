// Package approval decides for the approval of one NonAdminBackupStorageLocation: it has the request made and kept up to date,
// receives the decisions of administrators, and shows them what is to be decided.
//
// Package workflows registers Kind. NextApproval is a pure function of the view, and activities/location and the watcher call it,
// too.
package approval
