// Package restore acts on FoundationDBRestores: Activities keep the object, its plan, finalizer and status, Tools ask and
// command the destination by FoundationDB's tools, and the tasks that follow a restore are run here. A restore that was ever
// started is never started again.
//
// The worker registers both, for workflows/fdb/restore. It imports, of ours, activities and others below them, k8s and
// workflows/contract.
package restore
