// Package fdb knows the kinds of FoundationDB: of each, which events concern it, when its workflow is signalled, and how it is
// counted.
//
// It makes values of watched.Kind, which package watch runs where FoundationDB is served, and keeps the version of its cluster
// on each backup. It knows nothing of Velero. It imports, of ours, packages watched, caches and trim, k8s,
// activities/fdb/gather, and the decisions in workflows/fdb/backup and workflows/fdb/restore.
package fdb
