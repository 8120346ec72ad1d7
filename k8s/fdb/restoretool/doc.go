// Package restoretool parses the output of `fdbrestore` and `fdbcli` about a restore: its state and progress, whether the
// database is locked, whether a range has keys, and which version the database had at a time.
//
// Everything is a pure function. The activities of FoundationDBRestores call it.
package restoretool
