// Package workflowtest is what the tests of several kinds' workflows share: a workflow over a Kubernetes cluster in memory,
// with the real activities and a script of what happens when.
//
// Only tests import it.
package workflowtest
