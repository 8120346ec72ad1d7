// Package schedules keeps Temporal's Schedules of periodic work, garbage collection, backup sync and default
// plans, as the policy says.
//
// Package watch calls it, for the leading watcher; starter makes its client. It knows which workflow a Schedule starts, and how
// often.
package schedules
