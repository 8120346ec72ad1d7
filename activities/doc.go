// Package activities holds what all activities share: the guard that stops them while another controller is in charge and gives
// their errors a type, heartbeats, registration, the Cluster on which activities act, and Object, by which they act on the
// objects of one kind: it gathers, calls a step, starts over after a conflict, and returns the view. The activities of each
// kind are in a package below it: its value of Object, and its steps.
//
// Activities carry out the decisions of workflows: they read the present state from the API server itself, never from a cache,
// write what is due, and return the facts that decide the next step. Every activity is idempotent and may run twice, late, or
// at the same time as another attempt of itself.
//
// The packages below it call it.
package activities
