// Package restorespec judges the spec of a NonAdminRestore, builds from it the spec of the Velero Restore, and says what a
// restore from a tenant's storage location may bring.
//
// A verdict is a *check.InvalidSpecError. Everything is pure: what has been read is passed in. The activities of
// NonAdminRestores call it. It imports, of ours, policy and check.
package restorespec
