// Package workflows decides what happens next, one workflow per file. Workflow code does no I/O: it asks activities for
// facts, chooses the next step by a pure function over them, and waits for a signal or a timer. Anyone who changes it
// must keep the recorded histories in test/histories replaying (see CONTRIBUTING.md).
//
// Each kind of workflows is a Kind, beside its function; Kinds lists them all.
package workflows
