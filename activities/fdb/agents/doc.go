// Package agents builds and judges the Deployment of a backup's agents: the processes that copy between a FoundationDB cluster
// and the object store. What a user may change in their pods is said at podTemplate.
//
// It does no I/O. The activities of FoundationDBBackups and package jobs call it. It imports, of ours, activities/fdb/gather,
// k8s and workflows/contract.
package agents
