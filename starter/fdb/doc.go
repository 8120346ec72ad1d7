// Package fdb is how `holdfast list` and `holdfast describe` show FoundationDBBackups and FoundationDBRestores, and `holdfast
// fdb`, which shows and steers the queue of expirations.
//
// The command in package main lists what it offers. It imports, of ours, operator, k8s/api, workflows/contract and decisions.
package fdb
