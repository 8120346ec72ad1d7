// Package workflows lists the kinds of workflows, and registers them with a worker or a replayer. Each kind decides what
// happens next in a package below it. Workflow code does no I/O: activities return facts, a pure function over them chooses the
// next step, and the workflow waits for a signal or a timer. Every change must keep the recorded histories in test/histories
// replaying (see CONTRIBUTING.md).
//
// The worker and tests call it. The packages below it do no I/O: test/house keeps clients, stores and clouds out.
package workflows
