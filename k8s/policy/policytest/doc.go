// Package policytest holds the objects and assertions that the tests of the packages below k8s/policy share.
//
// Only tests import it.
package policytest
