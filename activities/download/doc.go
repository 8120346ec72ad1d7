// Package download acts on NonAdminDownloadRequests: it knows which file may be handed out (never another tenant's or an
// administrator's), what the Velero DownloadRequest for it says, what the status must say, and when the request's time is
// over. What happens next, workflows/download decides by the View.
//
// The worker registers Activities, which read the API server itself. The watcher calls Gather over its cache, in which a
// Digest stands for each signed URL. It imports, of ours, activities, activities/backup and activities/restore, k8s and
// workflows/contract.
package download
