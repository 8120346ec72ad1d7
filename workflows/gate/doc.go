// Package gate holds the workflow RolloutGate, which a new version of a worker must pass before it gets work.
//
// Package workflows registers it for every task queue of workflows; its activity is in activities/gate. It imports, of ours, only
// packages below workflows.
package gate
