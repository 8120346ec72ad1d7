// Package location is how `holdfast list` and `holdfast describe` show storage locations and what is to be approved, and
// `holdfast approve`, `reject` and `revoke`, which write an administrator's decision and wait for what comes of it.
//
// The command in package main lists what it offers.
package location
