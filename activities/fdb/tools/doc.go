// Package tools asks and commands FoundationDB by its own tools, for one FoundationDBBackup at a time: with the secrets of
// that object's namespace, read anew for each call, and with no others. A command may be repeated after any end: it looks
// first whether it is due.
//
// The worker registers Tools on the tools' queue; the activities of restores share its lock and limits. It imports, of ours,
// activities, activities/fdbtool and others below activities/fdb, k8s, workflows/contract and the decisions in
// workflows/fdb/backup.
package tools
