// Package schedules keeps Temporal's Schedules of periodic work, garbage collection and backup sync, as the policy says.
//
// Package watch calls it, for the leading watcher; starter makes its client. It knows which workflow a Schedule starts, and how
// often. It imports workflows/contract, the policy, and from package signal the timeout of a workflow task.
package schedules
