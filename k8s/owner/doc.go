// Package owner says which tenant's object an object of the OADP namespace was made for. It decides by labels, annotations,
// names, a UID and the storage location that holds a backup, over plain values. No other package reads these labels and
// annotations or compares the names that follow from them; a test keeps it so.
//
// The strengths of its answers, and which caller needs which, are at type Origin. Activities, policy and the watcher call it. It
// does no I/O, so any package may.
package owner
