// Package finalize is the work that follows when Velero has ended a restore: an ordered list of small tasks (seed 002). Each
// gathers what it needs, decides by pure functions, and does only what is not done yet, so that it can run again at any time.
// To add a task, write a file with a type that implements Task, and add a line to Tasks.
package finalize
