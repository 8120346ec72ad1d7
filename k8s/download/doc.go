// Package download knows what a NonAdminDownloadRequest, the backup or restore that it names, and the Velero DownloadRequest
// made for it say of each other: which file may be handed out (and that no other tenant's or administrator's ever is), what
// the status must say, when the request is settled and when its time is over. It decides nothing about what happens next; the
// workflow does.
//
// Everything but Gather is a pure function. The worker gathers from the API server itself, the watcher from its cache, in
// which a digest stands for each signed URL.
package download
