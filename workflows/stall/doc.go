// Package stall is what a workflow does while it waits for Velero: it looks for itself from time to time, and has it checked
// whether Velero has finished without saying so.
//
// The workflows of backups and restores use Watch, that of download requests its interval. It imports, of ours, workflows/call
// and workflows/contract.
package stall
