// Package operatortest holds what the tests of the commands share: what is printed of a value, a workflow that runs, and a
// coordinator that answers.
//
// Only tests import it.
package operatortest
