// Package verdict writes what a drill of any kind has found into its status. It does no I/O.
//
// The activities of drills use it.
package verdict
