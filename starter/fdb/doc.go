// Package fdb is `holdfast list` and `holdfast describe` for FoundationDBBackups and FoundationDBRestores, and `holdfast fdb`,
// which shows and changes the queue of expirations.
//
// Package main adds its commands.
package fdb
