// Package schedules keeps Temporal's Schedules of periodic work, garbage collection and backup sync, as the policy wants
// them.
//
// It is called by package watch, for the leading watcher; starter makes its client. It knows which workflow a Schedule
// starts, and how often. It imports workflows/contract, the policy, and of package signal how long a workflow task may take.
package schedules
