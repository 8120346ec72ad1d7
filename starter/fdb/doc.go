// Package fdb is `holdfast list` and `holdfast describe` for FoundationDBBackups and FoundationDBRestores, and `holdfast fdb`,
// which shows and changes the queue of expirations.
//
// Package main adds its commands. Of ours it imports operator, k8s/api, k8s/fdb/restoretool, workflows/contract and the decisions
// in workflows/fdb/backup.
package fdb
