// Package operatortest holds what the tests of the commands share: what is printed of a value, and a workflow that runs. Only
// tests import it.
package operatortest
