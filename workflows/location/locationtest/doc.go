// Package locationtest is what the tests of storage locations and of their approvals share: a world with a location, both
// workflows run over it to their end, and the table of situations that decisions meet.
//
// Only tests import it. It imports, of ours, package workflows, workflows/workflowtest and others below workflows, and
// activities/fake.
package locationtest
