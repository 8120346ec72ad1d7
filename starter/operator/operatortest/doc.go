// Package operatortest is what the tests of commands share: a workflow to describe, and what a person sees.
//
// Only tests import it. It imports, of ours, starter/operator and workflows/contract.
package operatortest
