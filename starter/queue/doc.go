// Package queue is `holdfast queue`, which shows and changes the queue before Velero: who has a turn, who waits and why, and the
// limits.
//
// Package main adds its command. It calls only Temporal.
package queue
