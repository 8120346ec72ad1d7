// Package owner says whose an object of the OADP namespace is: for which tenant's object it was made. It decides by labels,
// annotations, names, a UID and the storage location that holds a backup, over plain values. Nothing else reads these labels
// and annotations or compares the names that follow from them; a test keeps it so.
//
// The strengths of what it says, and who asks for which, are at type Origin. Activities, policy and the watcher call it: it
// reads nothing, so anything may. It imports, of ours, only k8s/api.
package owner
