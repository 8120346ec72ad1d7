// Package download acts on NonAdminDownloadRequests. It knows which file may be handed out (never another tenant's or an
// administrator's), the Velero DownloadRequest for it, its status, and when it expires. workflows/download decides what happens
// next by the View.
//
// The worker registers Activities, which read from the API server itself. The watcher calls Gather over its cache, in which a
// Digest replaces each signed URL.
package download
