// Package download fetches a file of a backup or restore from the object store by a URL that Velero has signed.
//
// Command kubectl-holdfast calls it. The URL opens the file to anyone who has it, so that no error shows it.
package download
