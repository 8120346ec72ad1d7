// Package contract holds the words that every side of Holdfast shares: kinds of workflows, IDs, signals, queries,
// activities, inputs, results, error types, task queues and search attributes.
//
// It is a leaf: it imports no other package of this module, so that a watcher, a command or a test can talk to a
// workflow without importing its code. Wire names are part of recorded histories: rename a Go identifier freely, a wire
// name never. Structs only grow, and a new field must mean the old behaviour when it is zero.
package contract
