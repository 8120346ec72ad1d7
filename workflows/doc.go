// Package workflows lists the kinds of workflows, and registers them with a worker or a replayer. Each kind decides what
// happens next in a package below it: workflow code does no I/O; it asks activities for facts, chooses the next step by a pure
// function over them, and waits for a signal or a timer. Who changes it must keep the recorded histories in test/histories
// replaying (see CONTRIBUTING.md).
//
// The worker and tests call it. Of ours, what is below workflows imports only what is below workflows, k8s/api and k8s/fdb,
// which read nothing; a test in test/house keeps clients, stores and clouds out.
package workflows
