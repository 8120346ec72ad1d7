// Package restorespec judges the spec of a NonAdminRestore, builds from it the spec of the Velero Restore, and says what a
// restore from a tenant's storage location may bring.
//
// A verdict is a *check.InvalidSpecError. All functions are pure. The activities of NonAdminRestores and the watcher call it.
package restorespec
