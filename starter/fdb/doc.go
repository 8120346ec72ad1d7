// Package fdb is how `holdfast list` and `holdfast describe` show FoundationDBBackups and FoundationDBRestores, and `holdfast
// fdb`, which shows and steers the queue of expirations.
//
// The command in package main lists what it offers. It imports, of ours, operator, k8s/api, k8s/process, workflows/connect,
// workflows/contract and the decisions in workflows/fdb/backup.
package fdb
