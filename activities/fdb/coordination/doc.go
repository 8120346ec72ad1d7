// Package coordination sends what one workflow asks or tells another: the owner of a FoundationDB cluster, the guard of a
// container, the throttle of first snapshots. It starts whom it asks if that does not run, waits for the answer, and finds out
// whose workflow has ended.
//
// The workers of the tools' queue and of contract.SharedTaskQueue register Activities. It imports, of ours, activities and
// workflows/contract, and no package of Kubernetes.
package coordination
