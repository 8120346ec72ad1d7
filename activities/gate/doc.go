// Package gate replays open workflows with the code of the worker that it runs in: activity replay-open-workflows of workflow
// RolloutGate. It lists them by visibility, chooses a sample, reads their histories, and replays each with Temporal's replayer.
// It only reads, and of a history nothing gets into a log, an error or a result but names.
//
// The workers register it for each task queue of workflows. It imports, of ours, activities and workflows/contract.
package gate
