// Package tasks verifies, when FoundationDB has ended a restore, that all is as it should be (seed 004). Unlike fdbrestore, which
// decides, it asks the database.
package tasks
