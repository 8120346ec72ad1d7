// Package fdb knows the kinds of FoundationDB: of each, which events concern it, when its workflow is signalled, and how it is
// counted.
//
// It makes values of controllers.Kind, which package watch runs where FoundationDB is served, and keeps the version of its
// cluster on each backup. It knows nothing of Velero.
package fdb
