// Package coordination sends a workflow's requests and signals to another one: the owner of a FoundationDB cluster, the guard of
// a container, the throttle of first snapshots. It starts that workflow if it does not run, waits for the answer, and finds out
// which workflows have ended.
//
// The workers of the tools' queue and of contract.SharedTaskQueue register Activities.
package coordination
