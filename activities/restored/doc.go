// Package restored finds out what a Velero Restore has brought into a namespace: what is missing, and whether what is there
// works.
//
// The finalization of a restore and a drill use it. It changes nothing.
package restored
