// Package drillworker makes and deletes the namespaces of drills, on a task queue of its own: it needs no more than the rights
// to do that.
//
// worker calls it.
package drillworker
