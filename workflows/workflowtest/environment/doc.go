// Package environment makes the environments in which tests run workflows.
//
// Only tests import it: all that run a workflow, also those of packages below the kinds.
package environment
