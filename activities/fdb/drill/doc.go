// Package drill acts on FoundationDBDrills. Activities maintain the object and its FoundationDBRestore, and refuse targets that
// are not fit. Tools reads source and target by FoundationDB's tools, and clears the target: only what the drill itself has
// restored.
//
// The worker registers both, for workflows/fdb/drill. Of ours it imports activities and packages below it, k8s and
// workflows/contract.
package drill
