// Package tasks checks a restore after FoundationDB has ended it: the destination is unlocked, and the version that was planned
// is what was restored. To add a task, write a type that implements Task, and add it to All.
//
// Package restore above it runs the tasks, and gives them the means to query the database.
package tasks
