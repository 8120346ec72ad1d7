// Package kinds says what a kind of workflows is when it is run: what contract.Kind says of it, its activities, its decisions,
// its function, and how it is registered.
//
// Each package of a kind makes one value of Kind; package workflows lists them. It imports, of ours, workflows/call,
// workflows/contract and workflows/entity, and no kind.
package kinds
