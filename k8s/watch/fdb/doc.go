// Package fdb knows the kinds of FoundationDB: of each, which events concern it, when its workflow is to look, and how it is
// counted.
//
// It makes values of watched.Kind, which package watch runs where FoundationDB is served, and keeps the version of its
// cluster on each backup. It knows nothing of Velero. It imports packages watched, caches and trim, and k8s/fdb and
// k8s/fdb/restore, which judge these kinds.
package fdb
