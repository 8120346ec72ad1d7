// Package quota decides whether the administrator's limits for a namespace leave a place for one more backup.
//
// It is pure: the activities of NonAdminBackups and the watcher count, with what they have read, and `holdfast describe
// namespace` shows. Package policy reads Limits.
package quota
