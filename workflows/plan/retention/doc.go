// Package retention decides which backups of a plan are kept, and which are to be deleted: grandfather, father, son.
//
// It knows times and states, and nothing of the backups' objects: the caller hands over only backups that the plan has made.
// The activities of plans and k8s/policy call it: it is a leaf.
package retention
