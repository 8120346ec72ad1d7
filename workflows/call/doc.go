// Package call is how workflows call activities: local first, durably, or once, see the functions.
//
// An activity is a value of package contract, so that an input of another type does not compile. The package imports contract and
// Temporal's SDK, and is called by the workflows.
package call
