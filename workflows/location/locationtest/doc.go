// Package locationtest is what the tests of storage locations and of their approvals share: a world with a location, functions
// that run both workflows over it to their end, and the table of situations in which decisions are made.
//
// Only tests import it.
package locationtest
