// Package download decides for one NonAdminDownloadRequest: the next step by its view, and when it is settled. The steps are
// run by entity.Course, at activities/download.
//
// Package workflows registers Kind, and the watcher asks Settled. It imports, of ours, only packages below workflows.
package download
