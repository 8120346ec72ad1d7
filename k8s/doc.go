// Package k8s is the Kubernetes side of Holdfast: client construction, and patches that cannot overwrite what somebody else
// wrote. Its sub-packages know one subject each: api (the custom resources), owner (whose an object is), backup (what a
// NonAdminBackup and its Velero Backup say of each other), policy (the admin's rules), probe (health), watch (events to
// signals).
package k8s
