// Package operatortest holds what the tests of the commands share: what is printed of a value, a workflow that runs, and a
// coordinator that answers.
//
// Only tests import it. It imports, of ours, starter/operator and workflows/contract.
package operatortest
