// Package stall is for workflows that wait for Velero: they re-read their objects from time to time, and check whether Velero
// has finished without updating its object.
//
// The workflows of backups and restores use Watch, that of download requests its interval.
package stall
