// Package restoretool parses the output of `fdbrestore` and `fdbcli` about a restore: its state and progress, whether the
// database is locked, whether a range has keys, and which version the database had at a time.
//
// Everything is a pure function. The activities of FoundationDBRestores call it. Of ours it imports k8s/api/fdb, k8s/fdb and
// workflows/contract.
package restoretool
