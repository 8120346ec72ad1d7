// Package location lists and describes storage locations and what is to be approved of them, and carries out what an
// administrator decides: `holdfast approve`, `reject` and `revoke`.
//
// starter has its values in the list of kinds, and adds its commands. It imports, of ours, starter/operator,
// activities/location (which says what a decision writes), k8s and workflows/contract.
package location
