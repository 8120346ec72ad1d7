// Package call is how workflows call activities: local first, durably, or once, see the functions.
//
// The workflows call it. An activity is a value of package contract, so that an input of another type does not compile.
package call
