// Package sample is what `make test` runs of what `make test-long` runs whole: matrices of which it has some cases, and tests in
// whose place it has a shorter one.
//
// The tests call it.
package sample
