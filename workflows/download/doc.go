// Package download decides for one NonAdminDownloadRequest: the next step by its view, and when it is settled. The
// steps are activities of activities/download.
//
// Package workflows registers Kind, and the watcher calls Settled.
package download
