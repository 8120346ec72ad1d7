// Package restoretool knows what `fdbrestore` and `fdbcli` print of a restore: its state and progress, whether the database is
// locked, whether a range has keys, and which version a time stands for.
//
// Everything is a pure function. The activities of FoundationDBRestores call it. It imports, of ours, k8s/api/fdb,
// k8s/fdb and workflows/contract.
package restoretool
