// Package gate runs the tests and decides what their failures mean: the product's fault, or a moment's.
//
// `make test-unit` and `make test-stacks` call it through holdfast-gate. What failed is run again, alone, and what passes then is
// a flake: it is forgiven, printed and kept in the ledger. Decide and Next are pure; test/README.md has the rules as a table.
package gate
