// Package fdb lists and describes FoundationDBBackups and FoundationDBRestores, and is `holdfast fdb`: it shows the queue of
// expirations, and asks it for what people want of it.
//
// starter has its values in the list of kinds, and adds its command. It imports, of ours, starter/operator, k8s/api,
// k8s/process, workflows/connect, workflows/contract and the decisions in workflows/fdb/backup.
package fdb
