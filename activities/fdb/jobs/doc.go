// Package jobs builds the pods in which data of FoundationDBBackups are expired and deleted, and reads what became of them.
// PlanTurn says what a turn of the queue of expirations has to do; each step of it is one Pod, whose View says how far it is.
//
// It does no I/O. The activities of expirations call it. It imports, of ours, activities/fdb/agents and activities/fdb/gather,
// k8s, workflows/contract and the decisions in workflows/fdb/backup and workflows/fdb/expiry.
package jobs
